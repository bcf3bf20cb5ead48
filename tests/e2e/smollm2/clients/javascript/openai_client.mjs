// OpenAI's own client.
import OpenAI from "openai";
import { baseURL, endless, maxTokens, messages, model, piecesBeforeLeaving, place, serve, unknown } from "./scenarios.mjs";

const client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
const greedy = { model, messages, temperature: 0, max_tokens: maxTokens };

await serve({
  async chat() {
    const answer = await client.chat.completions.create(greedy);
    const [choice] = answer.choices;
    return {
      text: choice.message.content,
      finish_reason: choice.finish_reason,
      completion_tokens: answer.usage.completion_tokens,
    };
  },
  async stream() {
    const pieces = [];
    let usage;
    const options = { ...greedy, stream: true, stream_options: { include_usage: true } };
    for await (const chunk of await client.chat.completions.create(options)) {
      pieces.push(chunk.choices[0]?.delta?.content ?? "");
      usage = chunk.usage ?? usage;
    }
    return { pieces, completion_tokens: usage.completion_tokens };
  },
  async error() {
    try {
      return await client.chat.completions.create({ ...greedy, model: unknown });
    } catch (error) {
      return { kind: error.constructor.name, status: error.status, message: error.message };
    }
  },
  async leave() {
    const pieces = [];
    for await (const chunk of await client.chat.completions.create({ ...greedy, ...endless, stream: true })) {
      pieces.push(chunk.choices[0]?.delta?.content ?? "");
      if (pieces.length === piecesBeforeLeaving) break;
    }
    return { pieces };
  },
  async structured() {
    const json_schema = { name: "place", strict: true, schema: place };
    const options = { ...greedy, response_format: { type: "json_schema", json_schema } };
    const answer = await client.chat.completions.create(options);
    return { value: JSON.parse(answer.choices[0].message.content) };
  },
});
