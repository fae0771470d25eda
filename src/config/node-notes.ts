import { kindOfBrowser } from "#core/browser-names.ts";

/** What some keys of a node mean for its user beside what they do. */

export interface NodeNote {
  readonly key: readonly string[];
  readonly what: string;
}

interface TlsKeys {
  /** Absent where the protocol is TLS always. */
  readonly tls?: boolean;
  readonly "skip-cert-verify"?: boolean;
  readonly fingerprint?: string;
  readonly "client-fingerprint"?: string;
  readonly "plugin-opts"?: TlsKeys;
}

interface NodeKeys extends TlsKeys {
  readonly alterId?: number;
  readonly cipher?: string;
  readonly "xhttp-opts"?: { readonly "reuse-settings"?: unknown };
}

/** `options` as any protocol's schema gives them: the keys have the same names in all of them. */
export function nodeNotes(options: NodeKeys): readonly NodeNote[] {
  const { "plugin-opts": plugin, tls, alterId = 0, cipher = "" } = options;
  return [
    ...(tls === false ? [] : tlsNotes(options, [])),
    ...(plugin === undefined || plugin.tls === false ? [] : tlsNotes(plugin, ["plugin-opts"])),
    ...(options["xhttp-opts"]?.["reuse-settings"] === undefined
      ? []
      : [{ key: ["xhttp-opts", "reuse-settings"], what: "reuse-settings has no effect" }]),
    ...(UNAUTHENTICATED.test(cipher) ? [{ key: ["cipher"], what: CHANGEABLE }] : []),
    ...(alterId > 0 ? [{ key: ["alterId"], what: OLD_HEADER }] : []),
  ];
}

/** The stream ciphers of Shadowsocks. */
const UNAUTHENTICATED = /^(aes-\d+-(cfb|ctr)|rc4-md5|x?chacha20|chacha20-ietf)$/;
const CHANGEABLE =
  "this cipher protects nothing against change: others on the way can alter what it carries; an AEAD cipher does protect it";

const OLD_HEADER =
  "alterId above 0 once meant the header under MD5; the AEAD header is sent, which servers take from such users, too";

function tlsNotes(options: TlsKeys, at: readonly string[]): readonly NodeNote[] {
  const notes: NodeNote[] = [];
  if (options["skip-cert-verify"] === true && options.fingerprint === undefined)
    notes.push({
      key: [...at, "skip-cert-verify"],
      what: "skip-cert-verify accepts any certificate; anybody on the way can read this traffic",
    });
  const what = browserNote(options["client-fingerprint"] ?? "");
  if (what !== null) notes.push({ key: [...at, "client-fingerprint"], what });
  return notes;
}

function browserNote(name: string): string | null {
  const kind = kindOfBrowser(name);
  if (kind === "unknown")
    return `client-fingerprint ${name} is not a browser that is known here; Chrome is shown`;
  if (kind === "of TLS 1.2")
    return `client-fingerprint ${name} speaks TLS 1.2 alone; the handshake shows the runtime's TLS library`;
  return null;
}
