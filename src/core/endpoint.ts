/** Canonical text: lower case, no zone, an IPv4-mapped address written as IPv4. Made by `parseIp` (#net/ip.ts) only. */
export type Ip = string & { readonly __brand: "Ip" };

export interface Endpoint {
  readonly ip: Ip;
  readonly port: number;
}
