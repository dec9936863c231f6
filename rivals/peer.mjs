// One end of a browser's call: node peer.mjs offer|answer FOLDER BEGIN SECONDS CAMERA [TRIALS].
// Both ends exchange their descriptions by files in FOLDER. The call begins at BEGIN (seconds since 1970); statistics of each second and the
// times of frames go to FOLDER/offer.json and answer.json. CHROMIUM names the browser, CODEC the codec (VP8).
import { chromium } from 'playwright-core';
import fs from 'node:fs';

const [role, folder, begin, seconds, camera, trials] = process.argv.slice(2);
const sleep = ms => new Promise(done => setTimeout(done, Math.max(0, ms)));
const until = second => sleep((+begin + second) * 1000 - Date.now());

// A file is whole once it has its name.
function put(name, text) {
  fs.writeFileSync(`${folder}/${name}.part`, text);
  fs.renameSync(`${folder}/${name}.part`, `${folder}/${name}`);
}
async function get(name, patience) {
  for (let waited = 0; !fs.existsSync(`${folder}/${name}`); waited += 20) {
    if (waited > patience) throw new Error(`${role}: no ${name}`);
    await sleep(20);
  }
  return fs.readFileSync(`${folder}/${name}`, 'utf8');
}

const args = ['--no-sandbox', '--disable-gpu', '--use-fake-ui-for-media-stream', '--use-fake-device-for-media-stream',
  `--use-file-for-fake-video-capture=${camera}`, '--autoplay-policy=no-user-gesture-required', '--disable-background-networking', '--no-first-run',
  // Nothing resolves mDNS names between namespaces.
  '--disable-features=WebRtcHideLocalIpsWithMdns'];
if (trials) args.push(`--force-fieldtrials=${trials}`);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', headless: true, args });
try {
  const page = await browser.newPage();
  await page.goto(new URL('page.html', import.meta.url).href);
  if (role === 'offer') {
    put('offer.sdp', await page.evaluate(codec => offer(codec), process.env.CODEC || 'VP8'));
    const sdp = await get('answer.sdp', 30000);
    await until(0);
    await page.evaluate(sdp => accept(sdp), sdp);
  } else {
    put('answer.sdp', await page.evaluate(sdp => answer(sdp), await get('offer.sdp', 30000)));
  }
  const rows = [];
  for (let second = 1; second <= +seconds; second++) {
    await until(second);
    rows.push(await page.evaluate(() => stats()));
  }
  put(role + '.json', JSON.stringify({ version: browser.version(), frames: await page.evaluate(() => shown), rows }));
  // The lab ends with the last program.
  if (role === 'answer') await get('offer.json', 10000);
} finally {
  await browser.close();
}
