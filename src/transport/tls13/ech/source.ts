/** Where a node's configuration of Encrypted ClientHello comes from: the file, or the DNS. */
import { AsyncLocalStorage } from "node:async_hooks";
import { ConfigError, DialError, messageOf } from "#core/errors.ts";
import type { Resolver } from "#core/resolver.ts";
import type { EchOptions } from "#core/tls.ts";
import { parseIp } from "#net/address/ip.ts";
import type { EchClientFields } from "#transport/tls/fields.ts";
import { parseEchConfigText, readEchConfigs } from "./config.ts";

export interface EchSourceContext {
  /** Named in errors: `proxy n`. */
  readonly where: string;
  /** The name that is to be hidden. */
  readonly serverName: string;
  /** Absent: the DNS cannot be asked. */
  readonly resolver?: Resolver | undefined;
}

/** Null: the node does not use it. Throws `ConfigError` where no configuration could ever be had. */
export function readEch(
  fields: EchClientFields | undefined,
  { where, serverName, resolver }: EchSourceContext,
): EchOptions | null {
  if (fields?.enable !== true) return null;
  const config = fields.config ?? "";
  if (config !== "") {
    const list = parseEchConfigText(config, `${where}: ech-opts.config`);
    return { configs: () => Promise.resolve(list) };
  }
  const name = fields["query-server-name"] || serverName;
  if (parseIp(name) !== null)
    throw new ConfigError(
      `${where}: ech-opts: needs config or query-server-name: ${name} is an address, which has no HTTPS records`,
    );
  const ask = resolver?.echConfigs?.bind(resolver);
  if (ask === undefined)
    throw new ConfigError(`${where}: ech-opts: needs config, for there is no resolver of HTTPS records here`);
  return new EchRecords(name, ask, where);
}

type Ask = (host: string, signal: AbortSignal) => Promise<Buffer | null>;

/** Asks for each connection; answers are kept by the resolver's cache, for as long as they are valid. */
class EchRecords implements EchOptions {
  readonly #name: string;
  readonly #ask: Ask;
  readonly #where: string;
  /** What is done for a question of ours, such as a connection to the DNS server. */
  readonly #asking = new AsyncLocalStorage<true>();

  constructor(name: string, ask: Ask, where: string) {
    this.#name = name;
    this.#ask = ask;
    this.#where = where;
  }

  async configs(signal: AbortSignal): Promise<Buffer> {
    if (this.#asking.getStore() === true)
      throw this.#failure(
        "the resolver asks for it through this very node; have a server under dns.proxy-server-nameserver that is reached without it, or set ech-opts.config",
      );
    let list: Buffer | null;
    try {
      list = await this.#asking.run(true, () => this.#ask(this.#name, signal));
    } catch (cause) {
      if (signal.aborted) throw cause;
      throw this.#failure(
        `the resolver does not answer (${messageOf(cause)}); such questions may be blocked: have another server under dns.proxy-server-nameserver, or set ech-opts.config`,
        cause,
      );
    }
    if (list === null)
      throw this.#failure(
        "there is no configuration in it: the server has no Encrypted ClientHello, or the resolver leaves such records out; have another server under dns.proxy-server-nameserver, or set ech-opts.config",
      );
    if (!isUsable(list)) throw this.#failure("there is no configuration in it that can be used");
    return list;
  }

  #failure(what: string, cause?: unknown): DialError {
    const message = `${this.#where}: ech-opts: HTTPS record of ${this.#name}: ${what}`;
    return new DialError("resolve", message, cause === undefined ? {} : { cause });
  }
}

function isUsable(list: Buffer): boolean {
  try {
    return readEchConfigs(list).length > 0;
  } catch {
    return false;
  }
}
