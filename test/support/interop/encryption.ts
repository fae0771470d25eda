/** VLESS Encryption and Encrypted ClientHello as the cells of the matrix have them. */
import { newEncryption } from "#protocols/vless/encryption/generate.ts";
import { generateEchKeyPair } from "#transport/tls13/ech/keys.ts";

export interface EncryptionCell {
  readonly name: string;
  /** Of the server. */
  readonly decryption: string;
  /** Of its clients. */
  readonly encryption: string;
}

const MODES = ["native", "xorpub", "random"] as const;
const KINDS = [
  ["x25519", "0rtt"],
  ["mlkem768", "1rtt"],
] as const;

/** Each mode with a key of each kind, both with tickets and with a round trip before each connection. */
export function encryptionCells(): readonly EncryptionCell[] {
  return MODES.flatMap((mode) =>
    KINDS.map(([kind, resumption]) => {
      const { server, client } = newEncryption(mode, kind);
      return {
        name: `${mode} ${kind} ${resumption}`,
        decryption: server,
        encryption: client.replace(/\.(0rtt|1rtt)\./, `.${resumption}.`),
      };
    }),
  );
}

const PUBLIC_NAME = "public.test";
const pair = generateEchKeyPair(PUBLIC_NAME);

/** PEM of the server's key, and the ECHConfigList of its clients in base64. */
export const ech = pair;
/** What is in the PEM block, in base64. */
export const echServerKeys = pair.key.replaceAll(/-----[A-Z ]+-----|\s/g, "");
/** The ECHConfigList as a PEM block. */
export const echConfigPem = [
  "-----BEGIN ECH CONFIGS-----",
  ...(pair.config.match(/.{1,64}/g) ?? []),
  "-----END ECH CONFIGS-----",
];
