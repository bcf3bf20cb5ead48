// The same as ../programs/scenarios.py, for JavaScript.
import { createInterface } from "node:readline";

export const [url, model, proxyUrl] = process.argv.slice(2);
export const baseURL = `${url}/v1`;
export const proxyBaseURL = `${proxyUrl}/v1`;
export const question = "What is the capital of France?";
export const messages = [{ role: "user", content: question }];
export const maxTokens = 40;
export const unknown = "gpt-unknown";
// More than any context has.
export const tooManyTokens = 1_000_000;
// Keeps the model from ending its answer, in OpenAI's own terms.
export const endless = { max_tokens: 4000, logit_bias: { 2: -100 } };
export const piecesBeforeLeaving = 3;
export const retries = 2;
// What an answer is that only has to come.
export const fewTokens = 4;

export const place = {
  type: "object",
  properties: { name: { type: "string", enum: ["Paris", "Berlin"] }, is_capital: { type: "boolean" } },
  required: ["name", "is_capital"],
  additionalProperties: false,
};

export const toolQuestion = "What is the weather in Paris?";
export const toolName = "get_weather";
export const toolDescription = "Gives the weather of a city.";
export const toolParameters = {
  type: "object",
  properties: { city: { type: "string", enum: ["Paris", "Berlin"] } },
  required: ["city"],
  additionalProperties: false,
};
export const toolResult = "Sunny, 25 degrees.";

export async function serve(scenarios) {
  for await (const line of createInterface({ input: process.stdin })) {
    const name = line.trim();
    const answer = name ? await scenarios[name]() : { names: Object.keys(scenarios).sort() };
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
}
