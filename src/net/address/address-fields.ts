/** Configuration values that are addresses; the other value types are in #core/fields.ts. */
import { Fault, scalar, show } from "#core/fields.ts";
import type { IpPrefix } from "#core/session.ts";
import { parseCidr } from "./cidr.ts";
import { familyOf, parseIp } from "./ip.ts";
import { itemAt } from "#lib/at.ts";

/** A literal address. */
export const ip = () =>
  scalar(
    { type: "string" },
    (source, raw) => parseIp(source) ?? new Fault(`expected an IP address, got ${show(raw)}`),
  );

/** A network with its host bits cleared; a bare address is a network of one. */
export const cidr = () =>
  scalar(
    { type: "string" },
    (source, raw) =>
      parseCidr(source) ?? new Fault(`expected a CIDR such as 10.0.0.0/8 or fd00::/8, got ${show(raw)}`),
  );

/** As `cidr`, with the prefix length written out. */
export const network = () =>
  scalar({ type: "string" }, (source, raw) => {
    const value = parseCidr(source);
    if (value !== null && source.includes("/")) return value;
    const example = value === null ? "192.168.1.20/32 or fd00::/8" : `${source}/${value.bits}`;
    return new Fault(`expected a CIDR with its prefix length such as ${example}, got ${show(raw)}`);
  });

/** `198.18.0.1/16` with its host bits; a bare address is the longest prefix. Null where it is neither. */
export function parsePrefix(text: string): IpPrefix | null {
  const network = parseCidr(text);
  const address = parseIp(itemAt(text.split("/", 1), 0));
  return network === null || address === null ? null : { ip: address, bits: network.bits };
}

/** An address with a prefix length, host bits kept, of one family or of either. */
export const prefix = (family?: 4 | 6) =>
  scalar({ type: "string" }, (source, raw) => {
    const value = parsePrefix(source);
    const example = family === 6 ? "fdfe:dcba:9876::1/64" : "198.18.0.1/16";
    if (value === null)
      return new Fault(`expected an address with prefix such as ${example}, got ${show(raw)}`);
    if (family === undefined || familyOf(value.ip) === family) return value;
    return new Fault(`expected an IPv${family} prefix such as ${example}, got ${show(raw)}`);
  });

export interface HostPort {
  /** A name, or the canonical text of an address; empty where only a port was given. */
  readonly host: string;
  readonly port: number;
}

/** `host:port`, `[v6]:port`, `:port`. Null where it is none of them. */
export function parseHostPort(text: string): HostPort | null {
  const [, bracketed, bare, digits] = /^(?:\[([^\]]+)\]|([^:\s[\]/]*)):(\d{1,5})$/.exec(text) ?? [];
  if (digits === undefined || Number(digits) > 65535) return null;
  if (bracketed !== undefined) {
    const literal = parseIp(bracketed);
    return literal === null ? null : { host: literal, port: Number(digits) };
  }
  return { host: bare as string, port: Number(digits) };
}

/** `127.0.0.1:9090`, `[::1]:9090`, `:9090`. */
export const hostPort = () =>
  scalar(
    { type: "string" },
    (source, raw) =>
      parseHostPort(source) ??
      new Fault(`expected host:port such as 127.0.0.1:9090, [::1]:9090 or :9090, got ${show(raw)}`),
  );
