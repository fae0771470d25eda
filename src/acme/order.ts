/** One order: from the account to the chain (RFC 8555 §7). */
import { createPrivateKey, generateKeyPairSync, X509Certificate } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type * as AcmeClient from "acme-client";
import type { ChallengeType } from "#core/acme.ts";
import type { KeyPair } from "#core/tls.ts";
import type { Library } from "./library.ts";

export interface Account {
  /** PEM. */
  readonly key: string;
  /** Its address at the authority; null: it has none yet. */
  readonly url: string | null;
  readonly email: string;
}

export interface OrderEnv {
  readonly directory: string;
  readonly email: string;
  readonly challenge: ChallengeType;
  readonly names: readonly string[];
  readonly account: Account | null;
  /** Called before the authority is told of a key, and when the account has its address. */
  keepAccount(account: Account): Promise<void>;
  /** Makes the answer to a validation; it stays until the order ends. */
  answer(name: string, challenge: Answer): Promise<void>;
  readonly signal: AbortSignal;
}

/** What an authority will ask for. */
export type Answer =
  | { readonly type: "http-01"; readonly token: string; readonly text: string }
  | { readonly type: "tls-alpn-01"; readonly pair: KeyPair };

/** An order that is not done by then has failed. */
const ORDER_TIMEOUT_MS = 5 * 60_000;
const FIRST_POLL_MS = 500;
const LONGEST_POLL_MS = 8_000;

type Client = AcmeClient.Client;

/** Throws with the authority's words where it refuses, or a name cannot be validated. */
export async function orderCertificate(library: Library, env: OrderEnv): Promise<KeyPair> {
  const client = await openAccount(library, env);
  const identifiers = env.names.map((value) => ({ type: "dns", value }));
  const order = await client.createOrder({ identifiers });
  const deadlineMs = Date.now() + ORDER_TIMEOUT_MS;
  const open = (await client.getAuthorizations(order)).filter(({ status }) => status !== "valid");
  for (const authorization of open) await prove(library, client, authorization, env);
  if (open.length > 0) await validated(client, order, env, deadlineMs);
  const privateKey = freshKey();
  const [, csr] = await library.crypto.createCsr({ altNames: [...env.names] }, privateKey);
  await client.finalizeOrder(order, csr);
  const issued = await polled(env.signal, deadlineMs, "the certificate is not ready", async () => {
    const { status, error, ...now } = await client.getOrder(order);
    if (status === "invalid") throw new Error(`the authority refuses the order${reasonIn(error)}`);
    return status === "valid" ? { ...now, status } : null;
  });
  const certificate = await client.getCertificate(issued);
  if (!new X509Certificate(certificate).checkPrivateKey(createPrivateKey(privateKey)))
    throw new Error("the authority's certificate is for another key");
  return { certificate, privateKey };
}

async function openAccount(
  library: Library,
  { directory: directoryUrl, email, account, keepAccount }: OrderEnv,
): Promise<Client> {
  const contact = email === "" ? [] : [`mailto:${email}`];
  const accountKey = account?.key ?? freshKey();
  const url = account?.url ?? null;
  const client = new library.Client({
    directoryUrl,
    accountKey,
    ...(url === null ? {} : { accountUrl: url }),
  });
  if (account === null) await keepAccount({ key: accountKey, url, email }); // a second try finds the same account
  if (url === null) await client.createAccount({ termsOfServiceAgreed: true, contact });
  else if (account?.email !== email) await client.updateAccount({ contact });
  else return client;
  await keepAccount({ key: accountKey, url: client.getAccountUrl(), email });
  return client;
}

async function prove(
  library: Library,
  client: Client,
  authorization: AcmeClient.Authorization,
  env: OrderEnv,
): Promise<void> {
  const name = authorization.identifier.value;
  const challenge = authorization.challenges.find(({ type }) => type === env.challenge);
  if (challenge === undefined) {
    const offered = authorization.challenges.map(({ type }) => type).join(", ");
    throw new Error(`${name}: the authority does not offer ${env.challenge}, but ${offered}`);
  }
  const text = await client.getChallengeKeyAuthorization(challenge);
  if (env.challenge === "http-01") await env.answer(name, { type: "http-01", token: challenge.token, text });
  else {
    const [key, certificate] = await library.crypto.createAlpnCertificate(authorization, text);
    const pair = { certificate: String(certificate), privateKey: String(key) };
    await env.answer(name, { type: "tls-alpn-01", pair });
  }
  await client.completeChallenge(challenge);
}

function validated(
  client: Client,
  order: AcmeClient.Order,
  { signal, challenge }: OrderEnv,
  deadlineMs: number,
): Promise<true> {
  return polled(signal, deadlineMs, "the names are not validated", async () => {
    const authorizations = await client.getAuthorizations(order);
    for (const { identifier, status, challenges } of authorizations) {
      if (status === "valid" || status === "pending") continue;
      const tried = challenges.find(({ type }) => type === challenge);
      throw new Error(`${identifier.value} was not validated by ${challenge}${reasonIn(tried?.error)}`);
    }
    return authorizations.every(({ status }) => status === "valid") || null;
  });
}

/** Asks again, less and less often, until the answer is not null. */
async function polled<T>(
  signal: AbortSignal,
  deadlineMs: number,
  lack: string,
  ask: () => Promise<T | null>,
): Promise<T> {
  for (let waitMs = FIRST_POLL_MS; ; waitMs = Math.min(waitMs * 2, LONGEST_POLL_MS)) {
    const answer = await ask();
    if (answer !== null) return answer;
    if (Date.now() > deadlineMs) throw new Error(`${lack} after ${ORDER_TIMEOUT_MS / 60_000} minutes`);
    await sleep(waitMs, undefined, { signal, ref: false });
  }
}

/** The words of an error of the authority (RFC 8555 §6.7). */
function reasonIn(error: object | undefined): string {
  const detail = error !== undefined && "detail" in error ? String(error.detail) : "";
  return detail === "" ? "" : `: ${detail.slice(0, 500)}`;
}

function freshKey(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" });
}
