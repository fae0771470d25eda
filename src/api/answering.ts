import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Serve } from "./listeners.ts";

/** Of one listener. Disposal ends its WebSockets and streams. */
export interface Answers extends Disposable {
  readonly serve: Serve;
}

/** Has the answers made with the first request, which waits for them; requests behind it are served at once. */
export class Answering implements Disposable {
  readonly #make: () => Promise<Answers>;
  readonly #log: Log;
  #made: Answers | null = null;
  #making: Promise<Answers> | null = null;
  #hasEnded = false;

  constructor(make: () => Promise<Answers>, log: Log) {
    this.#make = make;
    this.#log = log;
  }

  readonly serve: Serve = (request, response) => {
    if (this.#made !== null) return this.#made.serve(request, response);
    this.#making ??= this.#open();
    this.#making.then(
      ({ serve }) => serve(request, response),
      (error: unknown) => {
        this.#making = null; // the next request tries again
        this.#log.error(`controller: it cannot answer: ${messageOf(error)}`);
        response.writeHead(500, { connection: "close" }).end();
      },
    );
  };

  async #open(): Promise<Answers> {
    const made = await this.#make();
    this.#made = made;
    if (this.#hasEnded) made[Symbol.dispose]();
    return made;
  }

  [Symbol.dispose](): void {
    this.#hasEnded = true;
    this.#made?.[Symbol.dispose]();
  }
}
