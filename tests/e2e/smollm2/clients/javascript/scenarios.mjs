// The same as ../programs/scenarios.py, for JavaScript.
import { createInterface } from "node:readline";

export const [url, model] = process.argv.slice(2);
export const baseURL = `${url}/v1`;
export const question = "What is the capital of France?";
export const messages = [{ role: "user", content: question }];
export const maxTokens = 40;
export const unknown = "gpt-unknown";
// Keeps the model from ending its answer, in OpenAI's own terms.
export const endless = { max_tokens: 4000, logit_bias: { 2: -100 } };
export const piecesBeforeLeaving = 3;

export const place = {
  type: "object",
  properties: { name: { type: "string", enum: ["Paris", "Berlin"] }, is_capital: { type: "boolean" } },
  required: ["name", "is_capital"],
  additionalProperties: false,
};

export async function serve(scenarios) {
  for await (const line of createInterface({ input: process.stdin })) {
    const answer = await scenarios[line.trim()]();
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
}
