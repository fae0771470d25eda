/**
 * One POST of a webhook, straight to its receiver. The address that a name resolves to is looked at before it is dialled,
 * and that address is dialled: a receiver cannot lead weir into the network that weir is in.
 */
import type { Duplex } from "node:stream";
import { DialError } from "#core/errors.ts";
import type { Dialer } from "#core/outbound.ts";
import type { Trust } from "#core/trust.ts";
import type { WebhookAnswer, WebhookRequest } from "#journal/webhook-settings.ts";
import { request as httpRequest } from "#lib/node-http.ts";
import { publicOnly } from "#net/dial/public-only.ts";
import { openUrlStream } from "#net/dial/url-stream.ts";

/** More of an answer is not read; it counts as whole. */
const MOST_ANSWER_BYTES = 65_536;

/** Rejects with `DialError`. Never follows a redirect. */
export async function postWebhook(
  { url, headers, body, allowPrivate }: WebhookRequest,
  { dialer, trust }: { readonly dialer: Dialer; readonly trust: Trust },
  signal: AbortSignal,
): Promise<WebhookAnswer> {
  const to = new URL(url);
  const guarded: Dialer = allowPrivate ? dialer : publicOnly(dialer, "allow-private opens it");
  const stream = await openUrlStream(to, { dialer: guarded, trust }, signal);
  try {
    return await post(stream, to, { headers, body }, signal);
  } finally {
    stream.destroy();
  }
}

function post(
  stream: Duplex,
  to: URL,
  { headers, body }: Pick<WebhookRequest, "headers" | "body">,
  signal: AbortSignal,
): Promise<WebhookAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<WebhookAnswer>();
  const fail = (why: string): void => reject(new DialError("failed", `${to.host} ${why}`));
  const sent = httpRequest({
    createConnection: () => stream, // the name below is never resolved
    host: "webhook.invalid",
    method: "POST",
    path: `${to.pathname}${to.search}`,
    headers: { ...headers, host: to.host, "content-length": Buffer.byteLength(body), connection: "close" },
    signal,
  });
  sent.on("response", (response) => {
    const { statusCode: status = 0, headers: answered } = response;
    const answer = { status, retryAfterMs: retryAfterOf(answered["retry-after"]) };
    let bytes = 0;
    response.on("data", (chunk: Buffer) => {
      if ((bytes += chunk.length) > MOST_ANSWER_BYTES) resolve(answer);
    });
    response.on("end", () =>
      response.complete ? resolve(answer) : fail("closed in the middle of its answer"),
    );
    response.on("error", () => fail("closed in the middle of its answer"));
  });
  sent.on("error", reject);
  sent.on("close", () => fail("closed the connection without a whole answer"));
  sent.end(body);
  return promise;
}

function retryAfterOf(header: string | undefined): number | null {
  return header !== undefined && /^\d{1,6}$/.test(header) ? Number(header) * 1000 : null;
}
