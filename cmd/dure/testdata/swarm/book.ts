import { appendFileSync, existsSync, readFileSync } from "node:fs";

type Input = { line: string };

const parameters = { type: "object", properties: { line: { type: "string" } }, required: ["line"] };

export function register(api: any, config: { file: string }) {
  const lines = (): string[] => (existsSync(config.file) ? readFileSync(config.file, "utf8").split("\n") : []);
  api.tools.register({
    name: "enter",
    description: "Writes a line.",
    parameters,
    handler: (_: any, input: Input) => {
      appendFileSync(config.file, input.line + "\n");
      return "entered " + input.line;
    },
  });
  api.tools.register({
    name: "look",
    description: "Counts a line.",
    parameters,
    handler: (_: any, input: Input) => `${input.line} is there ${lines().filter((l) => l === input.line).length} times`,
  });
}
