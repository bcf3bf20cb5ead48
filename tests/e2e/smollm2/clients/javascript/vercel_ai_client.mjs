// The Vercel AI SDK with its provider for servers that are like OpenAI's.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateObject, generateText, jsonSchema, streamText } from "ai";
import { baseURL, endless, maxTokens, model, piecesBeforeLeaving, place, question, serve, unknown } from "./scenarios.mjs";

const provider = createOpenAICompatible({
  name: "served",
  baseURL,
  apiKey: "none",
  includeUsage: true,
  supportsStructuredOutputs: true,
});
const greedy = { model: provider(model), prompt: question, temperature: 0, maxOutputTokens: maxTokens, maxRetries: 0 };
// Its provider knows no logit_bias; what it does not know it passes on.
const options = { providerOptions: { served: { logit_bias: endless.logit_bias } }, maxOutputTokens: endless.max_tokens };

await serve({
  async chat() {
    const { text, finishReason, usage } = await generateText(greedy);
    return { text, finish_reason: finishReason, completion_tokens: usage.outputTokens };
  },
  async stream() {
    const answer = streamText(greedy);
    const pieces = [];
    for await (const piece of answer.textStream) pieces.push(piece);
    return { pieces, completion_tokens: (await answer.usage).outputTokens };
  },
  async error() {
    try {
      return await generateText({ ...greedy, model: provider(unknown) });
    } catch (error) {
      return { kind: error.name, status: error.statusCode, message: error.message };
    }
  },
  async leave() {
    const leaving = new AbortController();
    const answer = streamText({ ...greedy, ...options, abortSignal: leaving.signal });
    const pieces = [];
    for await (const piece of answer.textStream) {
      pieces.push(piece);
      if (pieces.length === piecesBeforeLeaving) leaving.abort();
    }
    return { pieces };
  },
  async structured() {
    const { object } = await generateObject({ ...greedy, schema: jsonSchema(place) });
    return { value: object };
  },
});
