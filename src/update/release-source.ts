/** Where a release is fetched from: its manifest with the signature, and archives beside them. */
import { createHash, type KeyObject } from "node:crypto";
import { createWriteStream } from "node:fs";
import type { IncomingMessage } from "node:http";
import { pipeline } from "node:stream/promises";
import { DialError } from "#core/errors.ts";
import type { Dialer } from "#core/outbound.ts";
import type { Trust } from "#core/trust.ts";
import { toDestination } from "#net/address/ip.ts";
import { publicOnly } from "#net/dial/public-only.ts";
import { fetchResource, fetchWith, type FetchRequest } from "#providers/fetch.ts";
import {
  MOST_MANIFEST_BYTES,
  readManifest,
  SIGNATURE_BYTES,
  type Manifest,
  type ReleaseFile,
} from "./manifest.ts";
import { UpdateError } from "./update-error.ts";

export interface ReleaseSourceOptions {
  /** `update.url`: a folder, or a manifest, whose name ends in .json. */
  readonly url: string;
  readonly key: KeyObject;
  readonly dialer: Dialer;
  readonly trust: Trust;
  readonly userAgent: string;
  /** For tests: what manifest and signature may take each, and what an archive may. */
  readonly timeoutMs?: number;
  readonly archiveTimeoutMs?: number;
}

const TIMEOUT_MS = 30_000;
/** An archive may come as slowly as this, and no slower. */
const SLOWEST_BYTES_PER_SECOND = 32 * 1024;

export class ReleaseSource {
  readonly #options: ReleaseSourceOptions;
  readonly #manifest: URL;
  readonly #dialer: Dialer;

  constructor(options: ReleaseSourceOptions) {
    this.#options = options;
    const { url, dialer } = options;
    this.#manifest = url.endsWith(".json")
      ? new URL(url)
      : new URL("manifest.json", url.endsWith("/") ? url : `${url}/`);
    this.#dialer = guarded(dialer, this.#manifest);
  }

  /** For messages; without a path, which may be secret. */
  get host(): string {
    return this.#manifest.host;
  }

  /** Rejects with `DialError`, and with `UpdateError` where the signature is wrong. */
  async manifest(signal: AbortSignal): Promise<Manifest> {
    const { href } = this.#manifest;
    const bytes = await this.#small(href, MOST_MANIFEST_BYTES, signal);
    const signature = await this.#small(`${href}.sig`, SIGNATURE_BYTES, signal);
    return readManifest(bytes, signature, this.#options.key);
  }

  /** Writes what has the size and the sum that the manifest says; rejects otherwise, with the file to be removed. */
  async save({ name, size, sha256 }: ReleaseFile, path: string, signal: AbortSignal): Promise<void> {
    const { archiveTimeoutMs = TIMEOUT_MS + (size / SLOWEST_BYTES_PER_SECOND) * 1000 } = this.#options;
    const url = new URL(name, this.#manifest).href;
    const take = (response: IncomingMessage, host: string): Promise<string> =>
      written(response, path, { host, name, sizeBytes: size });
    const request = this.#request(url, size, Math.ceil(archiveTimeoutMs));
    const asIs = { ...request, headers: { "accept-encoding": ["identity"] } };
    const found = await fetchWith(asIs, take, signal);
    if (found !== sha256)
      throw new UpdateError(`${name} has the sum ${found}, and the manifest says ${sha256}`);
  }

  async #small(url: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
    const { timeoutMs = TIMEOUT_MS } = this.#options;
    const { body } = await fetchResource(this.#request(url, maxBytes, timeoutMs), signal);
    return body ?? new Uint8Array(); // no ETag was sent
  }

  #request(url: string, maxBytes: number, timeoutMs: number): FetchRequest {
    const { trust, userAgent } = this.#options;
    return { url, maxBytes, timeoutMs, trust, userAgent, dialer: this.#dialer, headers: {}, etag: null };
  }
}

/** The server that the configuration names may be anywhere; what it redirects to must not lead into the own network. */
function guarded(dialer: Dialer, { protocol, hostname, port }: URL): Dialer {
  const first = toDestination(hostname, Number(port) || (protocol === "https:" ? 443 : 80));
  const others = publicOnly(dialer, "update.url may redirect to the public internet alone");
  return {
    connect(to, context) {
      const isFirst = to.host === first.host && to.ip === first.ip && to.port === first.port;
      return (isFirst ? dialer : others).connect(to, context);
    },
    associate: (to, context) => others.associate(to, context),
  };
}

interface Expected {
  readonly host: string;
  readonly name: string;
  readonly sizeBytes: number;
}

/** The SHA-256 of what was written. More than was said is not read. */
async function written(
  response: IncomingMessage,
  path: string,
  { host, name, sizeBytes }: Expected,
): Promise<string> {
  const encoding = response.headers["content-encoding"] ?? "identity";
  if (encoding !== "identity")
    throw new DialError("failed", `${host} packed ${name} once more, as ${JSON.stringify(encoding)}`);
  const hash = createHash("sha256");
  let length = 0;
  const counted = async function* (source: AsyncIterable<Buffer>) {
    for await (const chunk of source) {
      length += chunk.length;
      if (length > sizeBytes)
        throw new UpdateError(`${name} is larger than the ${sizeBytes} bytes that the manifest says`);
      hash.update(chunk);
      yield chunk;
    }
  };
  await pipeline(response, counted, createWriteStream(path, { flags: "wx", mode: 0o600 }));
  if (length < sizeBytes)
    throw new UpdateError(`${name} has ${length} bytes, and the manifest says ${sizeBytes}`);
  return hash.digest("hex");
}
