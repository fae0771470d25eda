/** All webhooks of a journal: which event goes where, and what is kept of deliveries. */
import { ApiError, messageOf } from "#core/errors.ts";
import type { DeadLetterView, WebhookView, WeirEvent } from "#core/events.ts";
import type { Change } from "#store/kv.ts";
import type { AsyncStore, StoredRecords } from "#store/opened-store.ts";
import type { Delivery } from "./delivery-queue.ts";
import type { EventKeeper } from "./event-log.ts";
import { DELIVERIES, keyOf } from "./parts.ts";
import { Webhook, type WebhookEnv } from "./webhook.ts";
import { wants, type WebhookSettings } from "./webhook-settings.ts";

/** Of one webhook; the oldest go. */
const MOST_DEAD = 1000;
/** What has become of deliveries is written in lots: a crash before costs a second delivery, never one. */
const WRITE_MS = 500;

interface StoredDelivery {
  readonly since: number;
  readonly subject: string;
  readonly attempts: number;
  readonly error: string;
  readonly dead?: true;
}

interface Hook {
  readonly webhook: Webhook;
  readonly dead: Map<number, Delivery>;
}

export type WebhooksEnv = Omit<WebhookEnv, "settled">;

export class Webhooks implements EventKeeper, Disposable {
  readonly #store: Pick<AsyncStore, "commit">;
  readonly #env: WebhooksEnv;
  readonly #hooks = new Map<string, Hook>();
  /** How many deliveries, pending or dead, an event has. */
  readonly #held = new Map<number, number>();
  /** Not written yet. */
  #changes = new Map<string, Buffer | null>();
  #timer: NodeJS.Timeout | null = null;

  constructor(store: Pick<AsyncStore, "commit">, env: WebhooksEnv) {
    this.#store = store;
    this.#env = env;
  }

  /** What is stored of a webhook that is no longer configured goes. */
  adopt(all: readonly WebhookSettings[], records: StoredRecords = []): void {
    for (const [name, { webhook }] of this.#hooks)
      if (!all.some((settings) => settings.name === name)) this.#remove(name, webhook);
    for (const settings of all) {
      const known = this.#hooks.get(settings.name);
      if (known !== undefined) known.webhook.settings = settings;
      else this.#hooks.set(settings.name, this.#open(settings));
    }
    for (const [key, value] of records) this.#restore(key, value);
    for (const { webhook } of this.#hooks.values()) webhook.pump();
  }

  plan(events: readonly WeirEvent[]): readonly Change[] {
    return events.flatMap((event) =>
      [...this.#hooks.values()]
        .filter(({ webhook }) => isFor(event, webhook.settings))
        .map(({ webhook }) => ({
          part: DELIVERIES,
          key: keyIn(webhook.settings.name, event.seq),
          value: this.#encode(this.#deliveryOf(event)),
        })),
    );
  }

  planned(events: readonly WeirEvent[]): void {
    for (const { webhook } of this.#hooks.values()) {
      for (const event of events.filter((one) => isFor(one, webhook.settings))) {
        this.#hold(event.seq, 1);
        webhook.add(this.#deliveryOf(event));
      }
      webhook.pump();
    }
  }

  holds(seq: number): boolean {
    return this.#held.has(seq);
  }

  views(): readonly WebhookView[] {
    return [...this.#hooks.values()].map(({ webhook, dead }) => webhook.view(dead.size));
  }

  deadLetters(name: string): readonly DeadLetterView[] {
    const all = [...this.#demand(name).dead.values()].sort((a, b) => a.seq - b.seq);
    return all.flatMap(({ seq, attempts, error }) => {
      const event = this.#env.event(seq);
      return event === null ? [] : [{ event, attempts, error }];
    });
  }

  async resend(name: string): Promise<number> {
    const { webhook, dead } = this.#demand(name);
    const chosen = [...dead.values()].sort((a, b) => a.seq - b.seq);
    const sinceMs = this.#env.monotonicMs(); // a day of its own
    const fresh = chosen.map((one) => ({ ...one, sinceMs, attempts: 0, error: "" }));
    for (const one of fresh) {
      dead.delete(one.seq);
      this.#keep(name, one.seq, this.#encode(one));
      webhook.add(one);
    }
    webhook.pump();
    await this.#write();
    return fresh.length;
  }

  demand(name: string): void {
    this.#demand(name);
  }

  /** Hands what has changed to the store, which is about to be closed. */
  flush(): void {
    void this.#write();
  }

  [Symbol.dispose](): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    for (const { webhook } of this.#hooks.values()) webhook[Symbol.dispose]();
  }

  #demand(name: string): Hook {
    const hook = this.#hooks.get(name);
    if (hook === undefined) throw new ApiError(404, "there is no webhook of this name");
    return hook;
  }

  #open(settings: WebhookSettings): Hook {
    const { name } = settings;
    const dead = new Map<number, Delivery>();
    const settled: WebhookEnv["settled"] = (delivery, outcome) => {
      const { seq } = delivery;
      if (outcome === "failed") return this.#keep(name, seq, this.#encode(delivery));
      if (outcome === "dead") return this.#bury(name, dead, delivery);
      this.#hold(seq, -1);
      this.#keep(name, seq, null);
    };
    return { dead, webhook: new Webhook(settings, { ...this.#env, settled }) };
  }

  #bury(name: string, dead: Map<number, Delivery>, delivery: Delivery): void {
    dead.set(delivery.seq, delivery);
    this.#keep(name, delivery.seq, this.#encode(delivery, true));
    for (const seq of dead.keys()) {
      if (dead.size <= MOST_DEAD) break;
      dead.delete(seq);
      this.#hold(seq, -1);
      this.#keep(name, seq, null);
    }
  }

  #remove(name: string, webhook: Webhook): void {
    webhook[Symbol.dispose]();
    const hook = this.#demand(name);
    this.#hooks.delete(name);
    for (const seq of [...webhook.queue.sequences(), ...hook.dead.keys()]) {
      this.#hold(seq, -1);
      this.#keep(name, seq, null);
    }
  }

  #restore(key: string, value: Buffer): void {
    const slash = key.indexOf("/");
    const [name, seq] = [key.slice(0, slash), Number(key.slice(slash + 1))];
    const hook = this.#hooks.get(name);
    if (hook === undefined || this.#env.event(seq) === null) return this.#keep(name, seq, null);
    const { since, subject, attempts, error, dead }: StoredDelivery = JSON.parse(value.toString());
    const { nowMs, monotonicMs } = this.#env;
    const sinceMs = monotonicMs() - Math.max(0, nowMs() - since);
    const delivery: Delivery = { seq, subject, sinceMs, attempts, error };
    this.#hold(seq, 1);
    if (dead === true) hook.dead.set(seq, delivery);
    else hook.webhook.add(delivery);
  }

  /** Just come. */
  #deliveryOf({ seq, subject }: WeirEvent): Delivery {
    return { seq, subject, sinceMs: this.#env.monotonicMs(), attempts: 0, error: "" };
  }

  /** Since when it waits is kept by the system's clock, which the next process has, too. */
  #encode({ sinceMs, subject, attempts, error }: Delivery, isDead = false): Buffer {
    const { nowMs, monotonicMs } = this.#env;
    const stored: StoredDelivery = {
      since: Math.trunc(nowMs() - (monotonicMs() - sinceMs)),
      subject,
      attempts,
      error,
      ...(isDead ? { dead: true } : {}),
    };
    return Buffer.from(JSON.stringify(stored));
  }

  #hold(seq: number, by: number): void {
    const count = (this.#held.get(seq) ?? 0) + by;
    if (count > 0) this.#held.set(seq, count);
    else this.#held.delete(seq);
  }

  #keep(name: string, seq: number, value: Buffer | null): void {
    this.#changes.set(keyIn(name, seq), value);
    this.#timer ??= setTimeout(() => void this.#write(), WRITE_MS).unref();
  }

  /** Never rejects: what could not be written is tried again with the next. */
  async #write(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#changes.size === 0) return;
    const changes = this.#changes;
    this.#changes = new Map();
    try {
      const all = [...changes].map(([key, value]) => ({ part: DELIVERIES, key, value }));
      await this.#store.commit(all, { backup: true });
    } catch (error) {
      this.#env.log.warning(`the state of deliveries to webhooks is not written: ${messageOf(error)}`);
      this.#changes = new Map([...changes, ...this.#changes]);
    }
  }
}

function isFor({ type, subject }: WeirEvent, settings: WebhookSettings): boolean {
  return type === "webhook.test" ? subject === `webhook/${settings.name}` : wants(settings, type);
}

function keyIn(name: string, seq: number): string {
  return `${name}/${keyOf(seq)}`;
}
