/** The thread that holds libnftables: a large set takes it a second, during which the event loop continues. */
import { parentPort } from "node:worker_threads";
import { openNftLibrary, type NftContext, type NftLibrary, type NftOutcome } from "./library.ts";

/** The first one of a session opens it; without commands it is closed, and with it go the tables that it owns. */
export interface NftRequest {
  readonly session: number;
  readonly commands: string | null;
}
/** One for each request, in their order; the first, without a request, says whether there is a library. */
export type NftReply = NftOutcome;

function serve(port: NonNullable<typeof parentPort>): void {
  const reply = (message: NftReply): void => port.postMessage(message);
  try {
    const sessions = new Sessions(openNftLibrary());
    port.on("message", (request: NftRequest) => reply(attempt(() => sessions.work(request))));
    reply(DONE);
  } catch (error) {
    reply(failed(error));
    port.close();
  }
}

const DONE: NftOutcome = { output: "", failure: null };

class Sessions {
  readonly #library: NftLibrary;
  readonly #open = new Map<number, NftContext>();

  constructor(library: NftLibrary) {
    this.#library = library;
  }

  work({ session, commands }: NftRequest): NftOutcome {
    if (commands === null) {
      this.#open.get(session)?.close();
      this.#open.delete(session);
      return DONE;
    }
    let context = this.#open.get(session);
    if (context === undefined) this.#open.set(session, (context = this.#library.openContext()));
    return commands === "" ? DONE : context.run(commands);
  }
}

/** An exception would end the thread and leave its table in the kernel with no session that could change it. */
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

if (parentPort !== null) serve(parentPort);
