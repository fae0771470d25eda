/** One webhook: its line of deliveries, and how one is made. */
import { readFile } from "node:fs/promises";
import type { WebhookView, WeirEvent } from "#core/events.ts";
import { ABORTED, messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { DeliveryQueue, type Delivery } from "./delivery-queue.ts";
import type { SendWebhook, WebhookSettings } from "./webhook-settings.ts";
import { keysOf, signatureOf } from "./webhook-signature.ts";

const TIMEOUT_MS = 15_000;
const MOST_RETRY_AFTER_MS = 3_600_000;
const MOST_ERROR_CHARACTERS = 200;

export interface WebhookEnv {
  readonly log: Log;
  /** Unix time. */
  readonly nowMs: () => number;
  /** What is waited goes by it: a system's clock may be set at any moment. */
  readonly monotonicMs: () => number;
  readonly send: () => SendWebhook;
  /** Stands in the ids of events, so that those of two journals are not taken for one another. */
  readonly instance: string;
  event(seq: number): WeirEvent | null;
  /** What has become of a delivery, to be kept. */
  settled(delivery: Delivery, outcome: "delivered" | "failed" | "dead"): void;
}

export class Webhook implements Disposable {
  readonly queue = new DeliveryQueue();
  settings: WebhookSettings;
  lastError = "";
  deliveredAtMs: number | null = null;
  readonly #env: WebhookEnv;
  readonly #end = new AbortController();
  #timer: NodeJS.Timeout | null = null;

  constructor(settings: WebhookSettings, env: WebhookEnv) {
    this.settings = settings;
    this.#env = env;
  }

  view(dead: number): WebhookView {
    const { name, url, events } = this.settings;
    return {
      name,
      origin: new URL(url).origin,
      events,
      pending: this.queue.size,
      dead,
      failures: this.queue.failures,
      lastError: this.lastError,
      deliveredAtMs: this.deliveredAtMs,
    };
  }

  add(delivery: Delivery): void {
    for (const given of this.queue.add(delivery)) this.#env.settled(given, "dead");
  }

  /** Sends what may be sent now, and looks again when more may. */
  pump(): void {
    if (this.#end.signal.aborted) return;
    const nowMs = this.#env.monotonicMs();
    for (const delivery of this.queue.take(nowMs)) void this.#deliver(delivery);
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const next = this.queue.nextAtMs(nowMs);
    if (next !== null) this.#timer = setTimeout(() => this.pump(), Math.max(10, next - nowMs)).unref();
  }

  [Symbol.dispose](): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#end.abort(ABORTED);
  }

  async #deliver(delivery: Delivery): Promise<void> {
    let wait = 0;
    try {
      wait = await this.#attempt(delivery);
      if (this.#end.signal.aborted) return;
      this.#succeeded(delivery);
    } catch (error) {
      if (this.#end.signal.aborted) return; // it is sent again by what opens the journal next
      if (error instanceof Refused) wait = error.waitMs;
      this.#failed(delivery, messageOf(error).slice(0, MOST_ERROR_CHARACTERS), wait);
    }
    this.pump();
  }

  #succeeded(delivery: Delivery): void {
    if (this.queue.failures > 0) this.#env.log.info(`webhook ${this.settings.name}: delivers again`);
    this.deliveredAtMs = this.#env.nowMs();
    this.queue.done(delivery);
    this.#env.settled(delivery, "delivered");
  }

  #failed(delivery: Delivery, error: string, waitMs: number): void {
    const { name } = this.settings;
    if (this.queue.failures === 0)
      this.#env.log.warning(`webhook ${name}: ${error}; it is tried again, for a day`);
    this.lastError = error;
    const given = this.queue.failed(delivery, error, this.#env.monotonicMs(), waitMs);
    for (const each of given) this.#env.settled(each, "dead");
    if (given.length > 0)
      this.#env.log.error(`webhook ${name}: ${given.length} events are given up after a day`);
    if (!given.includes(delivery)) this.#env.settled(delivery, "failed");
  }

  /** Rejects where it was not delivered. Answers with 0. */
  async #attempt({ seq }: Delivery): Promise<number> {
    const event = this.#env.event(seq);
    if (event === null) return 0; // taken away by hand: there is nothing left to send
    const { url, allowPrivate } = this.settings;
    const keys = await this.#keys();
    const id = `weir_${this.#env.instance}_${seq}`;
    const timestampSeconds = Math.floor(this.#env.nowMs() / 1000);
    const body = bodyOf(event);
    const headers = {
      "content-type": "application/json",
      "user-agent": "weir-webhooks",
      "webhook-id": id,
      "webhook-timestamp": String(timestampSeconds),
      "webhook-signature": signatureOf({ id, timestampSeconds, body }, keys),
    };
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    const signal = AbortSignal.any([this.#end.signal, timeout]);
    const { status, retryAfterMs } = await this.#env
      .send()({ url, headers, body, allowPrivate }, signal)
      .catch((error: unknown) => {
        throw timeout.aborted
          ? new Error(`no whole answer within ${TIMEOUT_MS / 1000} s`, { cause: error })
          : error;
      });
    if (status >= 200 && status < 300) return 0;
    const waitMs = Math.min(MOST_RETRY_AFTER_MS, retryAfterMs ?? 0);
    if (status >= 300 && status < 400)
      throw new Refused(`status ${status}; redirects are not followed`, waitMs);
    throw new Refused(`status ${status}`, waitMs);
  }

  async #keys(): Promise<readonly Buffer[]> {
    const { secret, secretFile } = this.settings;
    const text = secretFile === null ? (secret ?? "") : await readFile(secretFile, "utf8"); // keys change without a reload
    const keys = keysOf(text);
    if (typeof keys === "string") throw new Error(`secret-file: ${keys}`);
    return keys;
  }
}

/** An answer that is no success. */
class Refused extends Error {
  readonly waitMs: number;
  constructor(message: string, waitMs: number) {
    super(message);
    this.waitMs = waitMs;
  }
}

/** The same for each attempt: type, timestamp and data as the scheme recommends. */
function bodyOf({ seq, type, subject, atMs, data }: WeirEvent): string {
  return JSON.stringify({ type, timestamp: new Date(atMs).toISOString(), seq, subject, data });
}
