/** The part of dns-packet that tests use; the package ships no types. */
declare module "dns-packet" {
  export interface Question {
    readonly type: string;
    readonly name: string;
  }
  export interface OptAnswer {
    readonly type: "OPT";
    readonly name: string;
    readonly udpPayloadSize: number;
    readonly flags: number;
    readonly options: readonly unknown[];
  }
  export type Answer =
    | OptAnswer
    | { readonly type: string; readonly name: string; readonly ttl: number; readonly data: unknown };
  export interface Packet {
    readonly type: "query" | "response";
    readonly id?: number;
    readonly flags?: number;
    readonly questions?: readonly Question[];
    readonly answers?: readonly Answer[];
    readonly authorities?: readonly Answer[];
    readonly additionals?: readonly Answer[];
  }
  export const CHECKING_DISABLED: number;
  export const DNSSEC_OK: number;
  export function encode(packet: Packet): Buffer;
  export function decode(bytes: Buffer): Packet;
}
