/** Numbers of the DNS (IANA "Domain Name System Parameters") and their names. */

export const TYPE = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  NAPTR: 35,
  DNAME: 39,
  OPT: 41,
  SVCB: 64,
  HTTPS: 65,
} as const;

export const CLASS_IN = 1;

export const RCODE = {
  NOERROR: 0,
  FORMERR: 1,
  SERVFAIL: 2,
  NXDOMAIN: 3,
  NOTIMP: 4,
  REFUSED: 5,
} as const;

// Flags word (RFC 1035 §4.1.1, RFC 4035 §3): QR OPCODE(4) AA TC RD RA Z AD CD RCODE(4).
export const FLAG = {
  QR: 0x8000,
  AA: 0x0400,
  TC: 0x0200,
  RD: 0x0100,
  RA: 0x0080,
  AD: 0x0020,
  CD: 0x0010,
} as const;
export const OPCODE_MASK = 0x7800;
export const RCODE_MASK = 0x000f;

/** In the TTL field of OPT (RFC 6891 §6.1.3): "DNSSEC OK". */
export const EDNS_DO = 0x8000;
export const EDNS_CLIENT_SUBNET = 8;
/** RFC 7828. */
export const EDNS_TCP_KEEPALIVE = 11;
export const EDNS_PADDING = 12;

export const HEADER_BYTES = 12;
export const MAX_MESSAGE_BYTES = 65_535;
