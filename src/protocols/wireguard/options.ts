import * as z from "zod";
import { flag, int, list, name, scalar, Unsupported } from "#core/fields.ts";
import { unsupported } from "#core/node-fields.ts";
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
  z.union([
    list(int(0, 255)).refine((bytes) => bytes.length === 0 || bytes.length === RESERVED_BYTES, {
      message: "expected three numbers from 0 to 255",
      params: { unsupported: true },
    }),
    scalar({ type: "string" }, (source) => {
      const bytes = Buffer.from(source, "base64");
      return bytes.length === RESERVED_BYTES || source === ""
        ? [...bytes]
        : new Unsupported("expected three bytes, as numbers or in base64");
    }),
  ]);

const MOST_INTERVAL_SECONDS = 65_535;

const peerFields = {
  "public-key": key(),
  "pre-shared-key": key().optional(),
  reserved: reserved().optional(),
};

const endpointFields = {
  server: name().optional(),
  port: int(1, 65_535).optional(),
};

const peer = z.object({
  ...endpointFields,
  ...peerFields,
  "allowed-ips": list(network()),
});

export const outboundSchema = z.object({
  ...endpointFields,
  ...peerFields,
  "public-key": key().optional(),
  "private-key": key(),
  ip: address(4, "172.16.0.2").optional(),
  ipv6: address(16, "fd00::2").optional(),
  "allowed-ips": list(network()).optional(),
  peers: list(peer).optional(),
  mtu: int(0, 65_535).default(0),
  udp: flag().default(false),
  "persistent-keepalive": int(0, MOST_INTERVAL_SECONDS).default(0),
  "remote-dns-resolve": flag().default(false),
  dns: list(name()).optional(),
  workers: int(0, 1_000_000).default(0),
  "refresh-server-ip-interval": int(0, 1_000_000_000).default(0),
  "amnezia-wg-option": unsupported("the disguise of AmneziaWG is not in this build"),
});
export type OutboundOptions = z.output<typeof outboundSchema>;
