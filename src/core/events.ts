/**
 * What happens to users, listeners, nodes and weir itself, for programs that watch. Each part that has something to report
 * is given the sink of its kind; none of their methods throws, waits, or costs more than an entry in a bounded queue.
 */
import type { JsonValue } from "./control-configs.ts";

export const EVENT_TYPES = [
  "user.created",
  "user.changed",
  "user.disabled",
  "user.enabled",
  "user.deleted",
  "user.expired",
  "user.over-quota",
  "user.back",
  "user.first-connection",
  "user.new-address",
  "user.limit-reached",
  "listener.up",
  "listener.down",
  "node.dead",
  "node.back",
  "provider.refreshed",
  "provider.failed",
  "certificate.expiring",
  "store.healed",
  "kernel-direct.degraded",
  "kernel-direct.back",
  "config.applied",
  "config.refused",
  "program.upgraded",
  "program.restored",
  "program.restore-failed",
  "program.update-failed",
  "webhook.test",
  "events.lost",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** Without any secret, credential or link. */
export interface EventDraft {
  readonly type: EventType;
  /** What it is about: events of one subject are delivered in their order. */
  readonly subject: string;
  readonly data: Readonly<Record<string, JsonValue>>;
}

export interface WeirEvent extends EventDraft {
  /** From 1, rising; a number is not used twice by one journal. */
  readonly seq: number;
  readonly atMs: number;
}

/** A managed user in an event. */
export interface EventUser {
  readonly id: string;
  readonly name: string;
  readonly listener: string;
}

export interface UserEvents {
  created(user: EventUser): void;
  /** `changed`: the names of what differs, never a value. */
  changed(user: EventUser, changed: readonly string[]): void;
  enabled(user: EventUser, isEnabled: boolean): void;
  deleted(user: EventUser): void;
  /** Reported once however often it is called; null: within the limits again. */
  limited(user: EventUser, by: "expired" | "limited" | null): void;
  /** A session from an address that has no other session of this user. */
  connected(user: EventUser, ip: string): void;
  /** A session was refused. */
  refused(user: EventUser, limit: "connections" | "addresses"): void;
}

export interface ListenerEvents {
  /** Reported when it differs from what was reported last. `reason`: why it is down. */
  listener(name: string, reason: string | null): void;
}

export interface NodeEvents {
  /** After a test of delays; reported when it differs from what was reported last. */
  node(name: string, isAlive: boolean): void;
}

export interface ProviderEvents {
  /** `reason` null: it has been loaded. Its text names no address of a download. */
  provider(title: string, reason: string | null): void;
}

export interface StoreEvents {
  healed(file: string): void;
}

export interface KernelDirectEvents {
  /** Reported when it differs from what was reported last. */
  kernelDirect(reason: string | null): void;
}

export interface ConfigEvents {
  /** `refusal` null: it is in force. */
  config(source: string, refusal: string | null): void;
}

export interface CertificateEvents {
  /** It ends soon. `owner`: the listener, or the Controller. Reported once for each certificate. */
  certificate(owner: string, endsAtMs: number): void;
}

export interface RestoreEvents {
  /** A backup was put in force in place of the state; `reason` not null: everything is as it was. */
  restored(backupCreatedAtMs: number, reason: string | null): void;
}

export interface ProgramEvents {
  updateFailed(reason: string): void;
}

export type EventSinks = UserEvents &
  ListenerEvents &
  NodeEvents &
  ProviderEvents &
  StoreEvents &
  KernelDirectEvents &
  ConfigEvents &
  ProgramEvents &
  CertificateEvents &
  RestoreEvents;

const NOTHING = (): void => {};

/** For parts that have nothing to report to. */
export const NO_EVENTS: EventSinks = {
  created: NOTHING,
  changed: NOTHING,
  enabled: NOTHING,
  deleted: NOTHING,
  limited: NOTHING,
  connected: NOTHING,
  refused: NOTHING,
  listener: NOTHING,
  node: NOTHING,
  provider: NOTHING,
  healed: NOTHING,
  kernelDirect: NOTHING,
  config: NOTHING,
  updateFailed: NOTHING,
  certificate: NOTHING,
  restored: NOTHING,
};

export interface EventFeed {
  /** Events behind this number that are still kept; null: none of the past. */
  since(seq: number | null): {
    readonly events: readonly WeirEvent[];
    /** Some behind that number are gone. */ readonly isCut: boolean;
  };
  /** Called for each event once it is on the medium, in their order; it must not throw. */
  watch(on: (event: WeirEvent) => void): Disposable;
}

export interface WebhookView {
  readonly name: string;
  /** Without path and query, which may be secret. */
  readonly origin: string;
  readonly events: readonly string[];
  readonly pending: number;
  readonly dead: number;
  /** Of deliveries in a row. */
  readonly failures: number;
  readonly lastError: string;
  /** Null: none since the program runs. */
  readonly deliveredAtMs: number | null;
}

export interface DeadLetterView {
  readonly event: WeirEvent;
  readonly attempts: number;
  readonly error: string;
}

/** All throw, or reject with, `ApiError` 404 for a name that is not there. */
export interface WebhooksControl {
  views(): readonly WebhookView[];
  /** The oldest first. */
  deadLetters(name: string): readonly DeadLetterView[];
  /** All of them; answers with how many are tried again. */
  resend(name: string): Promise<number>;
  /** Settles when the event is kept; it is delivered like any other. */
  test(name: string): Promise<void>;
}
