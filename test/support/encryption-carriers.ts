/** Carriers of managed users below VLESS Encryption: each mode, with tickets and with a round trip before each connection. */
import { newEncryption } from "#protocols/vless/encryption/generate.ts";
import { type Carrier, ofVless } from "./user-traffic.ts";

export function encryptionCarriers(): readonly Carrier[] {
  return [
    carrier("native", "x25519", "0rtt"),
    carrier("xorpub", "mlkem768", "1rtt"),
    carrier("random", "x25519", "0rtt"),
  ];
}

function carrier(
  mode: "native" | "xorpub" | "random",
  kind: "x25519" | "mlkem768",
  resumption: "0rtt" | "1rtt",
): Carrier {
  const { server, client } = newEncryption(mode, kind);
  const encryption = client.replace(/\.(0rtt|1rtt)\./, `.${resumption}.`);
  return ofVless(`vless-${mode}`, `    decryption: ${server}\n`, { encryption, udp: true });
}
