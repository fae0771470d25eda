/** Which destinations are questions to our DNS service, whatever server they were sent to. */
import { ConfigError } from "#core/errors.ts";
import type { Ip } from "#core/session.ts";
import { bytesOfIp, parseIp } from "#net/address/ip.ts";
import type { TunSettings } from "./settings.ts";

const DNS_PORT = 53;

interface Entry {
  /** Null: any address. */
  readonly address: Uint8Array | null;
  readonly port: number;
}

export class Hijack {
  readonly #entries: readonly Entry[];

  /** `own`: the addresses behind the TUN's own ones, whose port 53 is always taken. Throws `ConfigError`. */
  constructor(entries: TunSettings["dnsHijack"], own: readonly Ip[]) {
    const written = entries.map(({ host, port }) => {
      const ip = parseIp(host);
      if (ip === null)
        throw new ConfigError(`dns-hijack: expected any:53 or address:port, got ${host}:${port}`);
      return { address: ip === "0.0.0.0" || ip === "::" ? null : bytesOfIp(ip), port };
    });
    this.#entries = [...written, ...own.map((ip) => ({ address: bytesOfIp(ip), port: DNS_PORT }))];
  }

  /** `at`: the offset of the destination's address in `bytes`. */
  takes(bytes: Uint8Array, at: number, addressBytes: number, port: number): boolean {
    for (const { address, port: wanted } of this.#entries) {
      if (port !== wanted) continue;
      if (address === null || (address.length === addressBytes && same(bytes, at, address))) return true;
    }
    return false;
  }

  takesEndpoint(ip: Ip, port: number): boolean {
    const bytes = bytesOfIp(ip);
    return this.takes(bytes, 0, bytes.length, port);
  }
}

function same(bytes: Uint8Array, at: number, address: Uint8Array): boolean {
  for (let index = 0; index < address.length; index++) if (bytes[at + index] !== address[index]) return false;
  return true;
}
