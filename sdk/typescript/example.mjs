// Asks for something, and decides itself what may be done for it:
//
//     node example.mjs [PROGRAM]

import { ControlError, start } from "./control.mjs";

process.on("uncaughtException", (err) => { // what went wrong, and what helps, without a stack
  console.error(err instanceof ControlError ? `${err.code}: ${err.message}${err.fix ? `; ${err.fix}` : ""}` : err);
  process.exit(1);
});

const host = await start({
  program: process.argv[2] ?? "dure",
  initialize: { client: { name: "example" } },
  canUseTool: (question) => {
    console.log(`asked: ${question.tool}`);
    return { behavior: "deny", reason: "look, and touch nothing" };
  },
});
try {
  const session = await host.open({ title: "An example" });
  const { result } = await host.say("Write a note", { session });
  console.log(`${result.status}: ${result.text}`);
} finally {
  await host.close();
}
