/** What webhooks cost connections: two programs alike but for these, asked in turn while users change in both. */
import { setTimeout as sleep } from "node:timers/promises";
import { cpuSecondsOf } from "../support/cpu-seconds.ts";
import { ManagedCore } from "../support/managed-core.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { freePort } from "../support/peer.ts";
import { residentMiB } from "../support/program-load.ts";
import { socksConnect } from "../support/socks-client.ts";
import {
  openReceiver,
  SIGNING_SECRET,
  slowBy,
  WELL,
  WRONG,
  type Behave,
} from "../support/webhook-receiver.ts";

const LISTENERS = `  - name: edge
    type: vless
    listen: 127.0.0.1
    port: 0
    allow-insecure: true
    users: []
  - name: door
    type: mixed
    listen: 127.0.0.1
    port: 0
`;
const IN_BATCH = 200;
const AT_ONCE = 8;
const BETWEEN_CHANGES_MS = 20;

export interface SetupFindings {
  readonly batches: number;
  readonly plain: Side;
  readonly withWebhooks: Side & { readonly delivered: number };
}

export interface Side {
  /** Medians of the batches. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuSeconds: number;
  readonly residentMiB: number;
  /** Each of them an event. */
  readonly changes: number;
}

/** `batches` of each. */
export async function proveSetup(batches: number): Promise<SetupFindings> {
  await using closing = new AsyncDisposableStack();
  const behaviours: readonly Behave[] = [
    WELL,
    slowBy(1_000),
    ...Object.values(WRONG).map(
      (wrong): Behave =>
        (_at, response) => (wrong(response), false),
    ),
  ];
  const receivers = await Promise.all(behaviours.map((behave) => openReceiver(behave)));
  for (const receiver of receivers) closing.use(receiver);
  const urls = [...receivers.map(({ url }) => url), `http://127.0.0.1:${await freePort()}/`];
  const hooks = urls.map(
    (url, at) => `  - {name: w${at}, url: "${url}", secret: "${SIGNING_SECRET}", allow-private: true}`,
  );
  const origin = closing.use(await openTcpOrigin(echo));
  const plain = closing.use(await Program.start(""));
  const hooked = closing.use(await Program.start(`webhooks:\n${hooks.join("\n")}\n`));
  for (const program of [plain, hooked]) program.begin();
  for (let at = 0; at < batches; at++)
    for (const program of at % 2 === 0 ? [plain, hooked] : [hooked, plain]) await program.batch(origin.port);
  const [one, other] = [plain.side(), hooked.side()];
  await Promise.all([plain.rest(), hooked.rest()]);
  const delivered = receivers[0]?.received.length ?? 0;
  return { batches, plain: one, withWebhooks: { ...other, delivered } };
}

/** A program whose only user changes again and again. */
class Program implements AsyncDisposable {
  readonly #core: ManagedCore;
  readonly #port: number;
  readonly #writing: Promise<void>;
  #goesOn = true;
  #changes = 0;
  #changesBefore = 0;
  readonly #p50: number[] = [];
  readonly #p99: number[] = [];
  #cpuSeconds = 0;

  private constructor(core: ManagedCore, port: number) {
    this.#core = core;
    this.#port = port;
    this.#writing = this.#write();
  }

  static async start(svc: string): Promise<Program> {
    const core = await ManagedCore.start({ listeners: LISTENERS, managed: ["edge"], svc });
    return new Program(core, await core.core.port("door"));
  }

  /** Changes count from here on. */
  begin(): void {
    this.#changesBefore = this.#changes;
  }

  async batch(originPort: number): Promise<void> {
    const took: number[] = [];
    const before = cpuSecondsOf(this.#core.core.pid);
    const lane = async (): Promise<void> => {
      for (let at = 0; at < IN_BATCH / AT_ONCE; at++) {
        const startedMs = performance.now();
        const { client, status } = await socksConnect(this.#port, "127.0.0.1", originPort);
        took.push(performance.now() - startedMs);
        client[Symbol.dispose]();
        if (status !== 0) throw new Error(`a connection was refused: ${status}`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
    took.sort((a, b) => a - b);
    this.#p50.push(took[Math.floor(took.length / 2)] ?? Number.NaN);
    this.#p99.push(took[Math.floor(took.length * 0.99)] ?? Number.NaN);
    this.#cpuSeconds += cpuSecondsOf(this.#core.core.pid) - before;
  }

  side(): Side {
    return {
      p50Ms: median(this.#p50),
      p99Ms: median(this.#p99),
      cpuSeconds: this.#cpuSeconds,
      residentMiB: residentMiB(this.#core.core.pid),
      changes: this.#changes - this.#changesBefore,
    };
  }

  async rest(): Promise<void> {
    this.#goesOn = false;
    await this.#writing;
  }

  async #write(): Promise<void> {
    const { id } = await this.#core.create("edge", "alice");
    while (this.#goesOn) {
      await this.#core.change("edge", "PUT", `/${id}`, { enabled: this.#changes % 2 === 1 });
      this.#changes++;
      await sleep(BETWEEN_CHANGES_MS);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.rest();
    await this.#core[Symbol.asyncDispose]();
  }
}

const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;

export function shownSetup({ batches, plain, withWebhooks }: SetupFindings): string {
  const { delivered } = withWebhooks;
  const side = ({ p50Ms, p99Ms, cpuSeconds, residentMiB: mib, changes }: Side): string =>
    `p50 ${p50Ms.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms, ${cpuSeconds.toFixed(2)} s of CPU, ${mib.toFixed(0)} MiB, ${changes} events`;
  return `${batches} batches of ${IN_BATCH} connections in turn, medians: without webhooks ${side(plain)}; with seven ${side(withWebhooks)}, ${delivered} delivered to the one that is well`;
}
