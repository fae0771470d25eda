/** A journal by itself, with webhooks that are really posted. */
import { SILENT } from "#core/log.ts";
import type { Ip } from "#core/session.ts";
import { Journal } from "#journal/journal.ts";
import type { WebhookSettings } from "#journal/webhook-settings.ts";
import { openDirectDialer } from "#net/dial/direct-dialer.ts";
import { DEFAULT_TRUST } from "#net/dial/trust.ts";
import { postWebhook } from "#runtime/webhook-post.ts";
import { openStoreHere } from "./store-here.ts";
import { SIGNING_SECRET } from "./webhook-receiver.ts";

const dialer = openDirectDialer({
  resolver: {
    lookup: async (host) => [
      { ip: (host === "inside.example" ? "127.0.0.1" : "192.168.1.1") as Ip, ttlMs: 1000 },
    ],
  },
});

export const webhookTo = (
  name: string,
  url: string,
  more: Partial<WebhookSettings> = {},
): WebhookSettings => ({
  name,
  url,
  secret: SIGNING_SECRET,
  secretFile: null,
  events: [],
  allowPrivate: true,
  ...more,
});

/** To be closed by the caller. */
export async function openSendingJournal(
  path: string,
  webhooks: readonly WebhookSettings[],
  nowMs: () => number = Date.now,
  monotonicMs = nowMs,
): Promise<Journal> {
  const journal = new Journal({ log: SILENT, nowMs, monotonicMs, openStore: openStoreHere });
  const audit = { keepMs: 1e12, mostEntries: 100 };
  const send = (request: Parameters<typeof postWebhook>[0], signal: AbortSignal) =>
    postWebhook(request, { dialer, trust: DEFAULT_TRUST }, signal);
  await journal.adopt({ secret: "", path, audit, totpKey: null, webhooks }, { version: "1", send });
  return journal;
}
