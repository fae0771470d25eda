/** What HTTP/3 is called in a TLS handshake (RFC 9114 §3.1). */
export const HTTP3_ALPN = "h3";
