/** The thread that holds libnftables: a large set takes it a second, during which the event loop goes on. */
import { parentPort } from "node:worker_threads";
import { openNftLibrary, type NftOutcome } from "./library.ts";

/** A command, or null: close the library, with it the tables that it owns, and end. */
export type NftRequest = string | null;
/** One for each request, in their order; the first, without a request, says whether there is a library. */
export type NftReply = NftOutcome;

if (parentPort !== null) serve(parentPort);

function serve(port: NonNullable<typeof parentPort>): void {
  const reply = (message: NftReply): void => port.postMessage(message);
  try {
    const library = openNftLibrary();
    port.on("message", (request: NftRequest) => {
      if (request !== null) return reply(attempt(() => library.run(request)));
      library.close();
      reply({ output: "", failure: null });
      port.close();
    });
    reply({ output: "", failure: null });
  } catch (error) {
    reply(failed(error));
    port.close();
  }
}

/** A thread that ended by an exception would leave the table behind, and nobody who could change it. */
function attempt(work: () => NftOutcome): NftOutcome {
  try {
    return work();
  } catch (error) {
    return failed(error);
  }
}

function failed(error: unknown): NftOutcome {
  return { output: "", failure: error instanceof Error ? error.message : String(error) };
}
