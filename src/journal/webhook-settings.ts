/** A webhook as the configuration has it, resolved. */
export interface WebhookSettings {
  readonly name: string;
  /** https, or http where private addresses are allowed. Path and query may be secret. */
  readonly url: string;
  /** The text of `secret`, or the absolute path of the file that has it. */
  readonly secret: string | null;
  readonly secretFile: string | null;
  /** Types, or `user.*`; empty: all. */
  readonly events: readonly string[];
  readonly allowPrivate: boolean;
}

export function wants({ events }: Pick<WebhookSettings, "events">, type: string): boolean {
  return (
    events.length === 0 ||
    events.some((one) => one === type || (one.endsWith(".*") && type.startsWith(one.slice(0, -1))))
  );
}

/** What is sent, and how it went. */
export interface WebhookRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly allowPrivate: boolean;
}

export interface WebhookAnswer {
  readonly status: number;
  /** Of a `retry-after` in seconds; null: there was none. */
  readonly retryAfterMs: number | null;
}

/** Rejects with an error whose message names neither path nor query. An answer counts only when it was read to its end. */
export type SendWebhook = (request: WebhookRequest, signal: AbortSignal) => Promise<WebhookAnswer>;
