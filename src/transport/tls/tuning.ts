import type { TlsVersion } from "#core/tls.ts";

/**
 * The choices of the ClientHello that the runtime's TLS library offers, set to Chrome's orders. Extension order, GREASE
 * and missing extensions still differ from a browser.
 */
export const clientTuning = {
  ciphers: [
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-RSA-CHACHA20-POLY1305",
    "ECDHE-RSA-AES128-SHA",
    "ECDHE-RSA-AES256-SHA",
    "AES128-GCM-SHA256",
    "AES256-GCM-SHA384",
    "AES128-SHA",
    "AES256-SHA",
  ].join(":"),
  ecdhCurve: "X25519MLKEM768:X25519:P-256:P-384",
  sigalgs: [
    "ecdsa_secp256r1_sha256",
    "rsa_pss_rsae_sha256",
    "rsa_pkcs1_sha256",
    "ecdsa_secp384r1_sha384",
    "rsa_pss_rsae_sha384",
    "rsa_pkcs1_sha384",
    "rsa_pss_rsae_sha512",
    "rsa_pkcs1_sha512",
  ].join(":"),
} as const;

/** The same for a context of `node:tls`. */
export function tuned(minVersion: TlsVersion = "TLSv1.2") {
  return { ...clientTuning, minVersion };
}
