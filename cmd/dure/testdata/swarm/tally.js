import { appendFileSync, existsSync, readFileSync } from "node:fs";

const lines = () => (existsSync("tally") ? readFileSync("tally", "utf8").split("\n") : []);

export const handlers = {
  enter: (_ctx, input) => {
    appendFileSync("tally", input.line + "\n");
    return "entered " + input.line;
  },
  look: (_ctx, input) => `${input.line} is there ${lines().filter((l) => l === input.line).length} times`,
};
