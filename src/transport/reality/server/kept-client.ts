import { Socket } from "node:net";
import { Duplex } from "node:stream";
import type { AcceptedConnection, OffloadedRecords, TakenRecords } from "#core/accepted.ts";
import type { TlsAccepted } from "#core/tls.ts";
import type { Bypass } from "#core/tls-bypass.ts";
import { guardErrors } from "#net/listen/accept.ts";
import { RecordStream } from "#transport/record-stream.ts";
import { TlsFault } from "#transport/tls13/alerts.ts";
import { cipherSuite, type CipherSuite } from "#transport/tls13/cipher-suites.ts";
import { Tls13Connection } from "#transport/tls13/connection.ts";
import type { Handshake } from "#transport/tls13/handshake.ts";

/** A client whose handshake a worker has done, and whose socket it keeps until the stream is looked at. */
export class KeptRealityClient implements TlsAccepted {
  readonly alpn = null;
  readonly serverName: string | null;
  readonly mayBypass: boolean;
  readonly connection: AcceptedConnection;
  readonly #records: OffloadedRecords;
  #stream: Duplex | null = null;

  constructor(
    connection: AcceptedConnection,
    records: OffloadedRecords,
    serverName: string,
    bypassable: boolean,
  ) {
    this.connection = connection;
    this.#records = records;
    this.serverName = serverName || null;
    this.mayBypass = bypassable;
  }

  /** Where nothing could be had of it, a stream that is over. */
  get stream(): Duplex {
    this.#stream ??= this.#take();
    return this.#stream;
  }

  get bypass(): Bypass | null {
    const { stream } = this;
    return this.mayBypass && stream instanceof RecordStream ? stream : null;
  }

  #take(): Duplex {
    const taken = this.#records.take();
    const suite = cipherSuite(taken.suite);
    if (taken.fd < 0 || suite === null) return new Duplex().destroy();
    const stream = new RecordStream(new Socket({ fd: taken.fd, allowHalfOpen: true }), resumed(suite, taken));
    guardErrors(stream);
    if (taken.payload.length > 0) stream.unshift(taken.payload);
    this.#records.continueBy(stream);
    return stream;
  }
}

/** A connection whose handshake was another one's. */
function resumed(suite: CipherSuite, { opened, sealed, secrets }: TakenRecords): Tls13Connection {
  const done: Handshake = {
    suite,
    isDone: true,
    start() {},
    take() {
      throw new TlsFault("unexpected_message", "a message of a handshake that is done");
    },
  };
  const connection = new Tls13Connection(() => done);
  connection.comeBack({ opened, sealed, secrets });
  return connection;
}
