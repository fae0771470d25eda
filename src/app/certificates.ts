/** Certificates by ACME for what a configuration lists. */
import type { Duplex } from "node:stream";
import type { Asked, CertificateKeeper } from "#acme/keeper.ts";
import type { Config } from "#config/config.ts";
import { certificateFile, type AcmeSettings, type WantedCertificate } from "#core/acme.ts";
import { DialError } from "#core/errors.ts";
import type { Host } from "#host/host.ts";
import { openTrust } from "#net/dial/trust.ts";
import { openUrlStream } from "#net/dial/url-stream.ts";
import type { Runtime } from "#runtime/runtime.ts";
import { VERSION } from "#version.ts";

interface CertificatesEnv {
  readonly host: Pick<Host, "files" | "log" | "challenges">;
  /** The one in force, whose outbounds lead to the authority; null before the first. */
  readonly runtime: () => Runtime | null;
}

/** Loads what orders certificates when a configuration asks for one. */
export class Certificates implements AsyncDisposable {
  readonly #env: CertificatesEnv;
  #keeper: CertificateKeeper | null = null;

  constructor(env: CertificatesEnv) {
    this.#env = env;
  }

  /** As `CertificateKeeper` says. */
  async prepare(asked: Asked): Promise<void> {
    if (asked.wanted.length === 0) return;
    this.#keeper ??= await this.#open();
    await this.#keeper.prepare(asked);
  }

  /** Behind `prepare`. */
  use(asked: Asked): void {
    this.#keeper?.use(asked);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#keeper?.[Symbol.asyncDispose]();
  }

  async #open(): Promise<CertificateKeeper> {
    const { CertificateKeeper: Keeper } = await import("#acme/index.ts");
    const { host, runtime } = this.#env;
    return new Keeper({
      ...host,
      userAgent: `weir/${VERSION}`,
      connect: (url, settings, signal) => connectTo(url, settings, { host, runtime }, signal),
    });
  }
}

async function connectTo(
  url: URL,
  { ca, proxy }: AcmeSettings,
  { host: { files }, runtime }: CertificatesEnv,
  signal: AbortSignal,
): Promise<Duplex> {
  const present = runtime();
  if (present === null) throw new DialError("failed", "nothing is in force yet");
  const { outbounds, config } = present;
  const dialer = proxy === "" ? outbounds.direct : outbounds.all.get(proxy);
  if (dialer === undefined) throw new DialError("failed", `acme.proxy: proxy ${proxy} not found`);
  const own = ca === null ? null : await openTrust([...config.tls.customCertifactes, ca], files, "acme.ca");
  return await openUrlStream(url, { dialer, trust: own ?? present.trust }, signal);
}

/** One for each file: listeners that ask for the same names share it. */
export function askedBy({ acme, listeners, tls }: Pick<Config, "acme" | "listeners" | "tls">): Asked {
  if (acme === null) return { acme, wanted: [] };
  const { agreeTos: _, ...settings } = acme;
  const wanted = new Map<string, WantedCertificate>();
  const add = (owner: string, names: readonly string[]): void => {
    const file = certificateFile(acme, names);
    if (names.length > 0 && !wanted.has(file)) wanted.set(file, { owner, names, file });
  };
  add("tls", tls.acme);
  for (const { name, options } of listeners) add(`listener ${name}`, namesOf(options));
  return { acme: settings, wanted: [...wanted.values()] };
}

/** What a listener's key `acme` asks for; empty: nothing. */
export function namesOf(options: object): readonly string[] {
  const { acme = [] }: { readonly acme?: readonly string[] } = options;
  return acme;
}
