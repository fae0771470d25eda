/** The first messages of a client and of dest: whom is the client to speak with? Whatever it says reaches dest as it is. */
import type { Admitted } from "./admission.ts";
import { type DestFlight, readDestFlight } from "./dest-flight.ts";
import { type Ends, type Readers, untilSettled } from "./ends.ts";
import { HelloReader } from "#transport/tls13/hello-reader.ts";

const ANSWER_TIMEOUT_MS = 30_000;
const NOTHING = Buffer.alloc(0);

/** A client's first message. */
export interface Heard {
  /** Null: it is dest's business. */
  readonly admitted: Admitted | null;
  /** All that dest has sent. */
  readonly fromDest: Buffer;
}

/** Until it is clear who the client is, or dest has spoken. Neither end is read then. */
export async function hearHello(ends: Ends, admit: (hello: Buffer) => Admitted | null): Promise<Heard> {
  const { dest } = ends;
  const hello = new HelloReader();
  const notAdmitted = (fromDest: Buffer = NOTHING): Heard => ({ admitted: null, fromDest });
  return await untilSettled<Heard>(ends, notAdmitted, (settle) => ({
    dest: {
      data: (fromDest) => settle(() => notAdmitted(fromDest)),
      end: () => settle(notAdmitted),
    },
    client: {
      data(bytes) {
        dest.stream.write(bytes); // no more than a hello's length
        const message = hello.push(bytes);
        if (message === "none") settle(notAdmitted);
        else if (message !== "more") settle(() => ({ admitted: admit(message), fromDest: NOTHING }));
      },
      end: () => settle(notAdmitted),
    },
  }));
}

export interface Answer {
  /** Null: it cannot be imitated, or the client has not waited for it. */
  readonly flight: DestFlight | null;
  /** All that dest has sent. */
  readonly fromDest: Buffer;
}

/**
 * Dest's answer to the hello of a client that is let in. Such a client waits for it: one that says more before, ends or goes
 * away has heard the hello from another one. Neither end is read then.
 */
export async function readAnswer(ends: Ends): Promise<Answer> {
  let fromDest: Buffer = NOTHING;
  let timer: NodeJS.Timeout | undefined;
  const nothing = (): Answer => ({ flight: null, fromDest });
  const start = (settle: (make: () => Answer) => void): Readers => {
    timer = setTimeout(() => settle(nothing), ANSWER_TIMEOUT_MS);
    return {
      dest: {
        data(bytes) {
          fromDest = fromDest.length === 0 ? bytes : Buffer.concat([fromDest, bytes]); // up to MAX_FLIGHT_BYTES and one piece
          const flight = readDestFlight(fromDest);
          if (flight === "none") settle(nothing);
          else if (flight !== "more") settle(() => ({ flight, fromDest }));
        },
        end: () => settle(nothing),
      },
      client: {
        data(bytes) {
          ends.dest.stream.write(bytes);
          settle(nothing);
        },
        end: () => settle(nothing),
      },
    };
  };
  return await untilSettled(ends, nothing, start, () => clearTimeout(timer));
}
