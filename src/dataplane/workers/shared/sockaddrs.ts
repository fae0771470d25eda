import type { Endpoint, Ip } from "#core/session.ts";
import { bytesOfIp, ipFromBytes } from "#net/address/ip.ts";
import { decodeSockaddr, encodeSockaddr, SOCKADDR_BYTES, v4At } from "#platform/linux/sockaddr.ts";
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

  source(sockaddr: Uint8Array): Endpoint {
    return endpointOf(sockaddr, this.#sources);
  }

  local(sockaddr: Uint8Array): Endpoint {
    return endpointOf(sockaddr, this.#locals);
  }

  original(sockaddr: Uint8Array): Endpoint {
    return endpointOf(sockaddr, this.#originals);
  }

  /** Until the next call. */
  encode({ ip, port }: Endpoint): Uint8Array {
    const length = encodeSockaddr(this.#encoded, { address: bytesOfIp(ip), port });
    return this.#encoded.subarray(0, length);
  }
}

function endpointOf(sockaddr: Uint8Array, last: Last): Endpoint {
  const at = v4At(sockaddr);
  if (at === 0) {
    const raw = decodeSockaddr(sockaddr);
    return raw === null ? NOWHERE : { ip: ipFromBytes(raw.address), port: raw.port };
  }
  const port = (byteAt(sockaddr, 2) << 8) | byteAt(sockaddr, 3);
  const [a, b] = [byteAt(sockaddr, at), byteAt(sockaddr, at + 1)];
  const [c, d] = [byteAt(sockaddr, at + 2), byteAt(sockaddr, at + 3)];
  const address = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0;
  if (address !== last.address) {
    last.address = address;
    last.ip = `${a}.${b}.${c}.${d}` as Ip;
  }
  return { ip: last.ip, port };
}
