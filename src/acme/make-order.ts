/** What an order needs of this machine: the account, the answers to validations, the way to the authority. */
import { join } from "node:path";
import type { Duplex } from "node:stream";
import * as z from "zod";
import { folderOfDirectory, type AcmeSettings, type WantedCertificate } from "#core/acme.ts";
import type { SafeFiles } from "#core/files.ts";
import type { Log } from "#core/log.ts";
import type { KeyPair } from "#core/tls.ts";
import type { ChallengeBook } from "./challenge-book.ts";
import { openHttpAnswers, type HttpAnswers } from "./http-answers.ts";
import { withLibrary, type Refusals } from "./library.ts";
import { orderCertificate, type Account, type Answer } from "./order.ts";
import { readRecord, writeRecord } from "./our-files.ts";

export interface OrderingEnv {
  readonly files: Pick<SafeFiles, "resolve">;
  readonly log: Log;
  readonly challenges: ChallengeBook;
  readonly userAgent: string;
  connect(url: URL, settings: AcmeSettings, signal: AbortSignal): Promise<Duplex>;
  /** Filled with what the authority says. */
  readonly refusals: Refusals;
  readonly signal: AbortSignal;
}

const account = z.object({ key: z.string(), url: z.string().nullable(), email: z.string() });
const UNKNOWN_ACCOUNT = "urn:ietf:params:acme:error:accountDoesNotExist";

/** Throws with what the authority says, or why it cannot be asked. */
export async function makeOrder(
  { names }: WantedCertificate,
  acme: AcmeSettings,
  env: OrderingEnv,
): Promise<KeyPair> {
  const { files, log, refusals, signal, userAgent } = env;
  const file = join(files.resolve(folderOfDirectory(acme)), "account");
  const read = account.safeParse(await readRecord(file));
  const kept = read.success ? read.data : null;
  const connect = (url: URL, aborted: AbortSignal) => env.connect(url, acme, aborted);
  await using answers = new Answers(acme, env.challenges);
  const orderBy = (known: Account | null): Promise<KeyPair> =>
    withLibrary({ connect, userAgent, signal }, refusals, (library) =>
      orderCertificate(library, {
        ...acme,
        names,
        account: known,
        keepAccount: (made) => writeRecord(file, made),
        answer: answers.add,
        signal,
      }),
    );
  log.info(`acme: ordering a certificate for ${names.join(", ")} by ${acme.challenge}`);
  try {
    return await orderBy(kept);
  } catch (error) {
    if (kept === null || refusals.type !== UNKNOWN_ACCOUNT) throw error;
    log.warning("acme: the authority does not know our account any more; it gets another one");
    return await orderBy({ ...kept, url: null });
  }
}

/** Answers are there as long as the order. */
class Answers implements AsyncDisposable {
  readonly #acme: AcmeSettings;
  readonly #challenges: ChallengeBook;
  readonly #owned = new AsyncDisposableStack();
  #http: HttpAnswers | null = null;

  constructor(acme: AcmeSettings, challenges: ChallengeBook) {
    this.#acme = acme;
    this.#challenges = challenges;
  }

  readonly add = async (name: string, answer: Answer): Promise<void> => {
    if (answer.type === "tls-alpn-01") {
      this.#owned.use(this.#challenges.add(name, answer.pair));
      return;
    }
    this.#http ??= this.#owned.use(await openHttpAnswers(this.#acme.listen));
    this.#http.add(answer.token, answer.text);
  };

  [Symbol.asyncDispose](): Promise<void> {
    return this.#owned.disposeAsync();
  }
}
