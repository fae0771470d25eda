import * as z from "zod";
import { flag, int, leftOut, list, name, scalar, unsetAs, Unsupported } from "#core/fields.ts";
import { serverFields, unsupported } from "#core/node-fields.ts";
import { parseCidr } from "#net/address/cidr.ts";
import { KEY_BYTES } from "./sizes.ts";

const RESERVED_BYTES = 3;
const BASE64_KEY = /^[A-Za-z0-9+/]{43}=$/;

/** 32 bytes, as `wg genkey` writes them. */
const key = () =>
  scalar({ type: "string", format: "password" }, (source) => {
    const text = source.trim();
    return BASE64_KEY.test(text) && Buffer.from(text, "base64").length === KEY_BYTES
      ? text
      : new Unsupported("expected 32 bytes in base64, as wg genkey writes them");
  });

const network = () =>
  scalar({ type: "string" }, (source) =>
    parseCidr(source.trim()) === null
      ? new Unsupported("expected an address or a network such as 10.0.0.0/8")
      : source.trim(),
  );

/** An address of this end, with or without the length of its network. */
const address = (bytes: 4 | 16, example: string) =>
  scalar({ type: "string" }, (source) => {
    const cidr = parseCidr(source.trim().split("/", 1)[0] ?? "");
    return cidr?.bytes.length === bytes
      ? source.trim()
      : new Unsupported(`expected an address such as ${example}`);
  });

/** Three bytes, as numbers or in base64. */
const reserved = () =>
  leftOut(
    z.union([
      list(int(0, 255)).refine((bytes) => bytes.length === 0 || bytes.length === RESERVED_BYTES),
      scalar({ type: "string" }, (source) => {
        const bytes = source.includes(",")
          ? source.split(",").map(Number)
          : [...Buffer.from(source, "base64")];
        const isRight = bytes.length === RESERVED_BYTES && bytes.every((byte) => byte >= 0 && byte <= 255);
        if (isRight || source.trim() === "") return isRight ? bytes : [];
        return new Unsupported("expected three bytes, as numbers or in base64");
      }),
    ]),
  );

const optional = <S extends z.ZodType>(inner: S) => unsetAs(inner, undefined).optional();
const seconds = () => optional(leftOut(int(0, MOST_INTERVAL_SECONDS)));

const MOST_INTERVAL_SECONDS = 65_535;

const peerFields = {
  "public-key": key(),
  "pre-shared-key": optional(key()),
  reserved: reserved().optional(),
};

const endpointFields = {
  server: serverFields.server.optional(),
  port: serverFields.port.optional(),
};

const peer = z.object({
  ...endpointFields,
  ...peerFields,
  "allowed-ips": list(network()).optional(),
});

export const outboundSchema = z.object({
  ...endpointFields,
  ...peerFields,
  "public-key": key().optional(),
  "private-key": key(),
  ip: optional(address(4, "172.16.0.2")),
  ipv6: optional(address(16, "fd00::2")),
  "allowed-ips": list(network()).optional(),
  peers: list(peer).optional(),
  mtu: optional(leftOut(int(0, 65_535))),
  udp: flag().default(false),
  "persistent-keepalive": seconds(),
  "remote-dns-resolve": flag().default(false),
  dns: optional(list(name())),
  workers: z.unknown().optional(),
  "refresh-server-ip-interval": z.unknown().optional(),
  "amnezia-wg-option": unsupported("the disguise of AmneziaWG is not in this build"),
});
export type OutboundOptions = z.output<typeof outboundSchema>;
