/** One connection to the database, made when it is needed and anew after it was lost. One statement runs at a time. */
import { type Client, DatabaseError, type QueryResultRow } from "pg";
import { abandon, connect, type DatabaseOptions } from "./connection.ts";
import { FleetError, reasonOf } from "./errors.ts";

/** The statement may have been done or not: the connection was lost before its answer. */
export class UnansweredError extends FleetError {}

/** Statements that wait for one connection; beyond this the next one is refused. */
const MOST_WAITING = 256;

/** SQLSTATE classes after which the server ends the connection: PostgreSQL's documentation, appendix A. */
const ENDING = /^(57P|08|58)/;

export class FleetConnection implements Disposable {
  readonly #options: () => DatabaseOptions;
  #client: Client | null = null;
  #last: Promise<unknown> = Promise.resolve();
  /** Another one with each loss: what waited behind it is refused, not asked of the next connection one by one. */
  #round = {};
  #waiting = 0;
  #isClosed = false;
  readonly counts = { statements: 0, errors: 0, milliseconds: 0 };

  /** `options` is asked for every connection. */
  constructor(options: () => DatabaseOptions) {
    this.#options = options;
  }

  /**
   * Rejects with the server's `DatabaseError`, with `FleetError` where there is no connection and nothing was done, and with
   * `UnansweredError`.
   */
  async query<Row extends QueryResultRow>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    return this.run(async (client) => (await client.query<Row>(text, [...values])).rows);
  }

  /** The same for several statements that no others come between. */
  run<T>(work: (client: Client) => Promise<T>): Promise<T> {
    if (this.#waiting >= MOST_WAITING)
      return Promise.reject(new FleetError(`${MOST_WAITING} statements wait already`));
    this.#waiting++;
    const round = this.#round;
    const done = this.#last.then(() => this.#turn(round, work)).finally(() => this.#waiting--);
    this.#last = done.catch(() => {}); // the caller has it
    return done;
  }

  /** Lets go of the connection; the next statement makes another one. */
  drop(): void {
    const client = this.#client;
    this.#client = null;
    this.#round = {};
    if (client !== null) abandon(client);
  }

  /** Takes no statement any more; one under way is cut off. */
  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.drop();
  }

  async #turn<T>(round: object, work: (client: Client) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new FleetError("the node has left the fleet");
    if (this.#round !== round) throw new FleetError("the connection was lost");
    const startedMs = performance.now();
    try {
      return await this.#ask(await this.#open(), work);
    } catch (error) {
      this.counts.errors++;
      throw error;
    } finally {
      this.counts.statements++;
      this.counts.milliseconds += performance.now() - startedMs;
    }
  }

  async #open(): Promise<Client> {
    if (this.#client !== null) return this.#client;
    try {
      const client = await connect(this.#options());
      client.once("end", () => {
        if (this.#client === client) this.#client = null;
      });
      this.#client = client;
      if (this.#isClosed) this.drop();
      return client;
    } catch (error) {
      this.#round = {};
      throw error;
    }
  }

  async #ask<T>(client: Client, work: (client: Client) => Promise<T>): Promise<T> {
    try {
      return await work(client);
    } catch (error) {
      if (error instanceof DatabaseError && !ENDING.test(error.code ?? "")) throw error;
      if (error instanceof FleetError) throw error;
      this.drop(); // what is no answer of the server leaves the connection in the middle of something
      if (error instanceof DatabaseError) throw error;
      throw new UnansweredError(reasonOf(error), { cause: error });
    }
  }
}
