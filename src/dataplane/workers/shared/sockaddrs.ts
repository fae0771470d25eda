import type { Endpoint, Ip } from "#core/session.ts";
import { bytesOfIp, ipFromBytes, v4FromBytes, writeV4 } from "#net/address/ip.ts";
import {
  decodeSockaddr,
  encodeSockaddr,
  portOf,
  SOCKADDR_BYTES,
  SOCKADDR_IN_BYTES,
  v4At,
} from "#platform/linux/sockaddr.ts";
import { byteAt } from "#lib/at.ts";

const NOWHERE: Endpoint = { ip: ipFromBytes(new Uint8Array(4)), port: 0 };

/** Most clients come from few addresses and to one: the texts of the last ones are kept, for each kind. */
interface Last {
  address: number;
  ip: Ip;
}

const noneYet = (): Last => ({ address: 0, ip: NOWHERE.ip });

/** Between endpoints and the kernel's structures, with memory of its own. */
export class Sockaddrs {
  readonly #sources = noneYet();
  readonly #locals = noneYet();
  readonly #originals = noneYet();
  readonly #encoded = new Uint8Array(SOCKADDR_BYTES);
  /** A whole `sockaddr_in`, of which only address and port change. */
  readonly #v4 = new Uint8Array(SOCKADDR_IN_BYTES);

  constructor() {
    encodeSockaddr(this.#encoded, { address: new Uint8Array(4), port: 0 });
    this.#v4.set(this.#encoded.subarray(0, SOCKADDR_IN_BYTES));
  }

  /** That which begins at `start`. */
  source(bytes: Uint8Array, start = 0): Endpoint {
    return endpointOf(bytes, start, this.#sources);
  }

  local(sockaddr: Uint8Array): Endpoint {
    return endpointOf(sockaddr, 0, this.#locals);
  }

  original(sockaddr: Uint8Array): Endpoint {
    return endpointOf(sockaddr, 0, this.#originals);
  }

  /** Until the next call. */
  encode({ ip, port }: Endpoint): Uint8Array {
    if (writeV4(this.#v4, 4, ip)) {
      this.#v4[2] = port >> 8;
      this.#v4[3] = port & 0xff;
      return this.#v4;
    }
    const length = encodeSockaddr(this.#encoded, { address: bytesOfIp(ip), port });
    return this.#encoded.subarray(0, length);
  }
}

function endpointOf(bytes: Uint8Array, start: number, last: Last): Endpoint {
  const inside = v4At(bytes, start);
  if (inside === 0) {
    const raw = decodeSockaddr(bytes.subarray(start, start + SOCKADDR_BYTES));
    return raw === null ? NOWHERE : { ip: ipFromBytes(raw.address), port: raw.port };
  }
  const port = portOf(bytes, start);
  const at = start + inside;
  const [a, b] = [byteAt(bytes, at), byteAt(bytes, at + 1)];
  const [c, d] = [byteAt(bytes, at + 2), byteAt(bytes, at + 3)];
  const address = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0;
  if (address !== last.address) {
    last.address = address;
    last.ip = v4FromBytes(bytes, at);
  }
  return { ip: last.ip, port };
}
