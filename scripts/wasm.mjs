// Holds runs of ready scenarios in WebAssembly to the native ones, byte for byte: wasm.mjs NATIVE WASM [SEED [NAME...]]
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

const [native, wasm, seed = "1", ...wanted] = process.argv.slice(2);
const natively = (...args) => execFileSync(native, args, { encoding: "utf8", maxBuffer: 1 << 28 }).trimEnd();
const names = natively().split("\n");
const compiled = new WebAssembly.Module(readFileSync(wasm));
let different = 0;
for (const name of wanted.length ? wanted : names) {
    const { run, memory } = new WebAssembly.Instance(compiled).exports;
    const found = BigInt.asUintN(64, run(names.indexOf(name), BigInt(seed)));
    const text = new Uint8Array(memory.buffer, Number(found & 0xffffffffn), Number(found >> 32n));
    const here = new TextDecoder().decode(text).split("\n");
    const there = natively(name, seed).split("\n");
    const line = there.findIndex((line, at) => line !== here[at]);
    if (line < 0 && here.length === there.length) {
        console.log(`${name}: the same ${text.length} bytes`);
        continue;
    }
    different += 1;
    console.log(`${name}: line ${line + 1} is ${there[line]} natively, ${here[line]} in WebAssembly`);
}
process.exit(different ? 1 : 0);
