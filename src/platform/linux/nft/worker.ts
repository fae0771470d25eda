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
      if (request !== null) return reply(library.run(request));
      library.close();
      reply({ output: "", failure: null });
      port.close();
    });
    reply({ output: "", failure: null });
  } catch (error) {
    reply({ output: "", failure: error instanceof Error ? error.message : String(error) });
    port.close();
  }
}
