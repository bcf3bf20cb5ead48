// The Vercel AI SDK with its provider for servers that are like OpenAI's.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateObject, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import {
  baseURL,
  endless,
  fewTokens,
  maxTokens,
  model,
  piecesBeforeLeaving,
  place,
  proxyBaseURL,
  question,
  retries,
  serve,
  toolDescription,
  toolName,
  toolParameters,
  toolQuestion,
  toolResult,
  tooManyTokens,
  unknown,
} from "./scenarios.mjs";

const served = { name: "served", apiKey: "none", includeUsage: true, supportsStructuredOutputs: true };
const provider = createOpenAICompatible({ ...served, baseURL });
const proxied = createOpenAICompatible({ ...served, baseURL: proxyBaseURL });
const greedy = { model: provider(model), prompt: question, temperature: 0, maxOutputTokens: maxTokens, maxRetries: 0 };
const retrying = { ...greedy, model: proxied(model), maxRetries: retries };
const weather = { description: toolDescription, inputSchema: jsonSchema(toolParameters) };
const calling = { ...greedy, prompt: toolQuestion, tools: { [toolName]: tool(weather) } };
// Its provider knows no logit_bias; what it does not know it passes on.
const options = { providerOptions: { served: { logit_bias: endless.logit_bias } }, maxOutputTokens: endless.max_tokens };

async function failed(asked) {
  try {
    return await asked;
  } catch (error) {
    return { kind: error.name, status: error.statusCode, message: error.message };
  }
}

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
  error() {
    return failed(generateText({ ...greedy, model: provider(unknown) }));
  },
  invalid() {
    return failed(generateText({ ...greedy, maxOutputTokens: tooManyTokens }));
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
  async call() {
    const { toolCalls, finishReason } = await generateText({ ...calling, toolChoice: "required" });
    return { name: toolCalls[0].toolName, arguments: toolCalls[0].input, finish_reason: finishReason };
  },
  async call_stream() {
    const answer = streamText({ ...calling, toolChoice: { type: "tool", toolName } });
    let pieces = 0;
    for await (const part of answer.fullStream) if (part.type === "tool-input-delta") pieces += 1;
    const [made] = await answer.toolCalls;
    return { name: made.toolName, arguments: made.input, pieces, finish_reason: await answer.finishReason };
  },
  async round_trip() {
    const { steps, text } = await generateText({
      ...calling,
      model: proxied(model),
      tools: { [toolName]: tool({ ...weather, execute: async () => toolResult }) },
      stopWhen: stepCountIs(2),
      prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber === 0 ? "required" : "none" }),
    });
    const [made] = steps[0].toolCalls;
    return { name: made.toolName, arguments: made.input, text };
  },
  async retry() {
    return { text: (await generateText({ ...retrying, maxOutputTokens: fewTokens })).text };
  },
  refused() {
    return failed(generateText({ ...retrying, maxOutputTokens: tooManyTokens }));
  },
});
