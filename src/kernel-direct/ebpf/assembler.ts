/** A small assembler of eBPF (RFC 9669): one method an instruction, labels for jumps, references for maps. */

export type Register = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10;
/** Bytes of a memory access. */
export type Width = 1 | 2 | 4 | 8;
export type Comparison = "==" | "!=" | ">" | ">=" | "<" | "s<";

/** Instruction classes and modes, with the size bits where there are any. */
const LDX_MEM: Record<Width, number> = { 1: 0x71, 2: 0x69, 4: 0x61, 8: 0x79 };
const STX_MEM: Record<Width, number> = { 1: 0x73, 2: 0x6b, 4: 0x63, 8: 0x7b };
const ST_MEM: Record<Width, number> = { 1: 0x72, 2: 0x6a, 4: 0x62, 8: 0x7a };
const ALU = { add: 0x07, or: 0x47, and: 0x57, lsh: 0x67, rsh: 0x77, mov: 0xb7 } as const;
const FROM_REGISTER = 0x08;
const MOV32_IMMEDIATE = 0xb4;
const TO_BIG_ENDIAN = 0xdc;
const JUMPS: Record<Comparison, number> = {
  "==": 0x15,
  "!=": 0x55,
  ">": 0x25,
  ">=": 0x35,
  "<": 0xa5,
  "s<": 0xc5,
};
const JUMP = 0x05;
const CALL = 0x85;
const EXIT = 0x95;
const LOAD_IMMEDIATE_64 = 0x18;
const MAP_BY_DESCRIPTOR = 1;
const INSTRUCTION_BYTES = 8;

interface Instruction {
  readonly code: number;
  readonly to: number;
  readonly from: number;
  readonly offset: number;
  readonly immediate: number;
  /** Of a jump: replaced by the distance. */
  readonly label?: string;
}

export class Assembler {
  readonly #program: Instruction[] = [];
  readonly #labels = new Map<string, number>();

  label(name: string): this {
    if (this.#labels.has(name)) throw new Error(`the label ${name} stands twice`);
    this.#labels.set(name, this.#program.length);
    return this;
  }

  /** `to = *(from + offset)`, zero-extended. */
  load(width: Width, to: Register, from: Register, offset: number): this {
    return this.#add(LDX_MEM[width], { to, from, offset });
  }

  /** `*(to + offset) = from`. */
  store(width: Width, to: Register, offset: number, from: Register): this {
    return this.#add(STX_MEM[width], { to, from, offset });
  }

  storeImmediate(width: Width, to: Register, offset: number, immediate: number): this {
    return this.#add(ST_MEM[width], { to, offset, immediate });
  }

  copy(to: Register, from: Register): this {
    return this.#add(ALU.mov | FROM_REGISTER, { to, from });
  }

  /** Sign-extended to 64 bits. */
  set(to: Register, immediate: number): this {
    return this.#add(ALU.mov, { to, immediate });
  }

  /** The upper half becomes zero. */
  set32(to: Register, immediate: number): this {
    return this.#add(MOV32_IMMEDIATE, { to, immediate });
  }

  alu(operation: Exclude<keyof typeof ALU, "mov">, to: Register, immediate: number): this {
    return this.#add(ALU[operation], { to, immediate });
  }

  aluRegister(operation: Exclude<keyof typeof ALU, "mov">, to: Register, from: Register): this {
    return this.#add(ALU[operation] | FROM_REGISTER, { to, from });
  }

  /** Network order to a number, or back. */
  bigEndian(to: Register, bits: 16 | 32): this {
    return this.#add(TO_BIG_ENDIAN, { to, immediate: bits });
  }

  jump(label: string): this {
    return this.#add(JUMP, { label });
  }

  jumpIf(register: Register, comparison: Comparison, immediate: number, label: string): this {
    return this.#add(JUMPS[comparison], { to: register, immediate, label });
  }

  jumpIfRegister(register: Register, comparison: Comparison, other: Register, label: string): this {
    return this.#add(JUMPS[comparison] | FROM_REGISTER, { to: register, from: other, label });
  }

  /** A helper function of the kernel by its number; arguments in registers 1 to 5, the answer in 0. */
  call(helper: number): this {
    return this.#add(CALL, { immediate: helper });
  }

  map(to: Register, descriptor: number): this {
    this.#add(LOAD_IMMEDIATE_64, { to, from: MAP_BY_DESCRIPTOR, immediate: descriptor });
    return this.#add(0, {});
  }

  exit(): this {
    return this.#add(EXIT, {});
  }

  /** In the machine's byte order. Throws where a label is missing. */
  assemble(): Uint8Array {
    const bytes = new Uint8Array(this.#program.length * INSTRUCTION_BYTES);
    const view = new DataView(bytes.buffer);
    const little = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;
    for (const [at, { code, to, from, offset, immediate, label }] of this.#program.entries()) {
      const start = at * INSTRUCTION_BYTES;
      view.setUint8(start, code);
      view.setUint8(start + 1, little ? (from << 4) | to : (to << 4) | from);
      view.setInt16(start + 2, label === undefined ? offset : this.#distance(at, label), little);
      view.setInt32(start + 4, immediate | 0, little);
    }
    return bytes;
  }

  #distance(at: number, label: string): number {
    const target = this.#labels.get(label);
    if (target === undefined) throw new Error(`the label ${label} is nowhere`);
    return target - at - 1;
  }

  #add(code: number, { to = 0, from = 0, offset = 0, immediate = 0, label }: Partial<Instruction>): this {
    this.#program.push({ code, to, from, offset, immediate, ...(label === undefined ? {} : { label }) });
    return this;
  }
}
