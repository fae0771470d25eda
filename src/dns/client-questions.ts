/** What one client over QUIC asks. */
import type { Log } from "#core/log.ts";
import type { PerClientLimiter } from "#lib/in-flight.ts";
import type { QuicServerConnection } from "#transport/quic/server/connection.ts";
import type { HandleDns } from "./service.ts";

export interface QuestionsEnv {
  /** Shared with the other ways by which clients ask. */
  readonly questions: PerClientLimiter;
  readonly handle: HandleDns;
  readonly log: Log;
}

/** So many questions are being answered already. */
export class Overloaded extends Error {}

export class ClientQuestions {
  readonly #client: QuicServerConnection;
  readonly #env: QuestionsEnv;

  constructor(client: QuicServerConnection, env: QuestionsEnv) {
    this.#client = client;
    this.#env = env;
  }

  get log(): Log {
    return this.#env.log;
  }

  /** The answer, of any length. Rejects with `Overloaded` where its address asks too much at once, else as `HandleDns`. */
  async ask(message: Uint8Array): Promise<Uint8Array> {
    const { questions, handle } = this.#env;
    const { ip } = this.#client.peer;
    if (!questions.enter(ip)) throw new Overloaded(`${ip} asks too much at once`);
    try {
      return await handle(message, { network: "tcp" });
    } finally {
      questions.leave(ip);
    }
  }
}
