/** Conditions over the databases of addresses. They do not say how many records a code has: `size` is 0. */
import { ProtocolError } from "#core/errors.ts";
import type { AddressRecords, Facts, RuleData } from "#core/rule.ts";
import type { Ip } from "#core/session.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import type { CodesOf, SystemOf } from "./address-records.ts";

const NO_RECORDS: AddressRecords = {
  sourceCodes: null,
  destinationCodes: null,
  sourceSystem: "",
  destinationSystem: "",
};

/** The addresses whose record has this code. */
export function countryData(codesOf: CodesOf, code: string): RuleData {
  const codesAt = (ip: Ip) => undamaged(() => codesOf(bytesOfIp(ip)), []);
  return {
    ...addressData((ip) => codesAt(ip).includes(code)),
    records: ({ ip = null }, known) =>
      ip === null || hasCodes(known) ? known : { ...(known ?? NO_RECORDS), destinationCodes: codesAt(ip) },
  };
}

/** The addresses of the system with this number. */
export function systemData(systemOf: SystemOf, number: number): RuleData {
  const systemAt = (ip: Ip) => undamaged(() => systemOf(bytesOfIp(ip)), null);
  return {
    ...addressData((ip) => systemAt(ip)?.number === number),
    records({ ip = null }, known) {
      if (ip === null || (known ?? NO_RECORDS).destinationSystem !== "") return known;
      const found = systemAt(ip);
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

function addressData(holds: (ip: Ip) => boolean): RuleData {
  return {
    reads: ["ip"],
    size: 0,
    match: ({ ip }) => (ip === undefined ? undefined : ip !== null && holds(ip)),
  };
}

/** A damaged record says nothing. */
function undamaged<T>(read: () => T, nothing: T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof ProtocolError) return nothing;
    throw error;
  }
}
