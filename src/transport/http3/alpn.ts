/** What HTTP/3 is called in a TLS handshake (RFC 9114 §3.1). */
export const HTTP3_ALPN = "h3";

export const QUIC_STAYS = "its QUIC connections all have one UDP socket";

/** Of a listener's options: why it stays with its process; null: it does not speak HTTP/3. */
export function http3Stays(options: object): string | null {
  const alpn = "alpn" in options ? options.alpn : null;
  return Array.isArray(alpn) && alpn.includes(HTTP3_ALPN) ? QUIC_STAYS : null;
}
