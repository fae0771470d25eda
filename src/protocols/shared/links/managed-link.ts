/** `scheme://credential@host:port?query#name`, byte for byte as the subscription of a managed user has it. */
import type { PublicAddress } from "#core/protocol.ts";
import { publicKeyOf, publishedEch } from "./public-key.ts";

export interface LinkParts {
  readonly scheme: string;
  /** What stands before the `@`; several parts have colons between them. */
  readonly credential: readonly string[];
  readonly address: PublicAddress;
  readonly query: Readonly<Record<string, string>>;
  readonly name: string;
}

// What stays as it is (RFC 3986 §2.3 and the sub-delimiters each part allows); all else is escaped by its UTF-8 bytes.
const IN_CREDENTIAL = /[^A-Za-z0-9\-_.~$&+,;=]/gu;
const IN_QUERY = /[^A-Za-z0-9\-_.~]/gu;
const IN_FRAGMENT = /[^A-Za-z0-9\-_.~$&+,/:;=?@!()*]/gu;

export function shareLink({ scheme, credential, address, query, name }: LinkParts): string {
  const host = address.host.includes(":") ? `[${address.host}]` : address.host;
  const members = Object.entries(query)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${escape(value, IN_QUERY, "+")}`);
  const user = credential.map((part) => escape(part, IN_CREDENTIAL, "%20")).join(":");
  return `${scheme}://${user}@${host}:${address.port}?${members.join("&")}#${escape(name, IN_FRAGMENT, "%20")}`;
}

function escape(text: string, others: RegExp, space: string): string {
  return text.replace(others, (character) => {
    if (character === " ") return space;
    const bytes = [...Buffer.from(character)];
    return bytes.map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");
  });
}

export interface SecurityOptions {
  readonly certificate?: string | undefined;
  readonly "private-key"?: string | undefined;
  readonly "ech-key"?: string | undefined;
  readonly "reality-config"?:
    | {
        readonly "private-key": string;
        readonly "server-names": readonly string[];
        readonly "short-id": readonly string[];
      }
    | undefined;
}

/** What a client must know of the listener's security layer; empty: there is none. */
export function securityQuery(
  options: SecurityOptions,
  { host }: PublicAddress,
): Readonly<Record<string, string>> {
  const reality = options["reality-config"];
  if (reality !== undefined) {
    const [sni] = reality["server-names"];
    const ids = reality["short-id"];
    const sid = ids.find((id) => id !== "") ?? ids[0];
    return {
      security: "reality",
      fp: "chrome",
      pbk: publicKeyOf(reality["private-key"]),
      ...(sni === undefined ? {} : { sni }),
      ...(sid === undefined ? {} : { sid }),
    };
  }
  const hasTls = options.certificate !== undefined && options["private-key"] !== undefined;
  if (!hasTls) return {};
  const ech = publishedEch(options["ech-key"]);
  return { security: "tls", sni: host, ...(ech === null ? {} : { ech }) };
}
