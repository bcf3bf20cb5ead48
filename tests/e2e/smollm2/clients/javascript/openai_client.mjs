// OpenAI's own client.
import OpenAI from "openai";
import {
  baseURL,
  endless,
  fewTokens,
  maxTokens,
  messages,
  model,
  piecesBeforeLeaving,
  place,
  proxyBaseURL,
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

const client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
const proxied = new OpenAI({ baseURL: proxyBaseURL, apiKey: "none", maxRetries: retries });
const greedy = { model, messages, temperature: 0, max_tokens: maxTokens };
const weather = { name: toolName, description: toolDescription, parameters: toolParameters };
const tools = [{ type: "function", function: weather }];
const toolMessages = [{ role: "user", content: toolQuestion }];
const calling = { ...greedy, messages: toolMessages, tools, parallel_tool_calls: false };

async function failed(asked) {
  try {
    return await asked;
  } catch (error) {
    return { kind: error.constructor.name, status: error.status, message: error.message };
  }
}

function called({ message, finish_reason }, more = {}) {
  const [{ function: made }] = message.tool_calls;
  return { name: made.name, arguments: JSON.parse(made.arguments), finish_reason, ...more };
}

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
  error() {
    return failed(client.chat.completions.create({ ...greedy, model: unknown }));
  },
  invalid() {
    return failed(client.chat.completions.create({ ...greedy, max_tokens: tooManyTokens }));
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
  async call() {
    const answer = await client.chat.completions.create({ ...calling, tool_choice: "required" });
    return called(answer.choices[0]);
  },
  async call_stream() {
    const tool_choice = { type: "function", function: { name: toolName } };
    const events = client.chat.completions.stream({ ...calling, tool_choice });
    let pieces = 0;
    events.on("tool_calls.function.arguments.delta", () => (pieces += 1));
    const answer = await events.finalChatCompletion();
    return called(answer.choices[0], { pieces });
  },
  async round_trip() {
    const asked = await proxied.chat.completions.create({ ...calling, tool_choice: "required" });
    const [choice] = asked.choices;
    const result = { role: "tool", tool_call_id: choice.message.tool_calls[0].id, content: toolResult };
    const answer = await proxied.chat.completions.create({
      ...calling,
      messages: [...toolMessages, choice.message, result],
      tool_choice: "none",
      max_tokens: fewTokens,
    });
    return called(choice, { text: answer.choices[0].message.content });
  },
  async retry() {
    const answer = await proxied.chat.completions.create({ ...greedy, max_tokens: fewTokens });
    return { text: answer.choices[0].message.content };
  },
  refused() {
    return failed(proxied.chat.completions.create({ ...greedy, max_tokens: tooManyTokens }));
  },
});
