/** Canonical text: lower case, no zone, an IPv4-mapped address written as IPv4. Made by `parseIp` (#net/ip.ts) only. */
export type Ip = string & { readonly __brand: "Ip" };

export interface Endpoint {
  readonly ip: Ip;
  readonly port: number;
}

/** Where the client asked to go: a name, an address, or (fake-IP, hosts) both. At least one of the two is not null. */
export interface Destination {
  /** Lower case, without a trailing dot; never an address literal. */
  readonly host: string | null;
  readonly ip: Ip | null;
  readonly port: number;
}
