/** Conditions over the databases of addresses. They do not say how many records a code has: `size` is 0. */
import type { Condition } from "#core/condition.ts";
import type { AddressRecords, Facts, RuleData } from "#core/rule.ts";
import type { Ip } from "#core/session.ts";
import { codesAt, systemAt, type CodesOf, type SystemOf } from "#net/address/address-records.ts";

const NO_RECORDS: AddressRecords = {
  sourceCodes: null,
  destinationCodes: null,
  sourceSystem: "",
  destinationSystem: "",
};

/** A database as the main thread has opened it, and its bytes in shared memory. */
export interface OpenedDatabase<Find> {
  readonly find: Find;
  readonly bytes: Uint8Array;
}

/** The addresses whose record has this code. */
export function countryData({ find, bytes }: OpenedDatabase<CodesOf>, code: string): RuleData {
  const holds = (ip: Ip): boolean => codesAt(find, ip).includes(code);
  return {
    ...addressData(holds, { is: "country", database: bytes, code }),
    records: ({ ip = null }, known) =>
      ip === null || hasCodes(known)
        ? known
        : { ...(known ?? NO_RECORDS), destinationCodes: codesAt(find, ip) },
  };
}

/** The addresses of the system with this number. */
export function systemData({ find, bytes }: OpenedDatabase<SystemOf>, number: number): RuleData {
  const holds = (ip: Ip): boolean => systemAt(find, ip)?.number === number;
  return {
    ...addressData(holds, { is: "system", database: bytes, number }),
    records({ ip = null }, known) {
      if (ip === null || (known ?? NO_RECORDS).destinationSystem !== "") return known;
      const found = systemAt(find, ip);
      if (found === null) return known;
      return { ...(known ?? NO_RECORDS), destinationSystem: `${found.number} ${found.owner}`.trim() };
    },
  };
}

/** The networks of one category: all that is learnt of an address is whether it lies in them. */
export function categoryData(networks: RuleData, code: string): RuleData {
  return {
    ...networks,
    records(facts: Facts, known) {
      const codes = known?.destinationCodes ?? [];
      if (codes.includes(code) || networks.match(facts) !== true) return known;
      return { ...(known ?? NO_RECORDS), destinationCodes: [...codes, code] };
    },
  };
}

function hasCodes(known: AddressRecords | null): boolean {
  return known !== null && known.destinationCodes !== null;
}

function addressData(holds: (ip: Ip) => boolean, condition: Condition): RuleData {
  return {
    condition,
    reads: ["ip"],
    size: 0,
    match: ({ ip }) => (ip === undefined ? undefined : ip !== null && holds(ip)),
  };
}
