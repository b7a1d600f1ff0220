// Pictures drawn here, in the sizes that cameras, scanners and screens make: nothing to download, nobody's photograph.

function random(seed) {
  let state = seed;
  return () => {
    state = (state * 1664525 + 1013904223) % 4294967296;
    return state / 4294967296;
  };
}

function landscape(pen, width, height) {
  const next = random(7);
  const sky = pen.createLinearGradient(0, 0, 0, height * 0.62);
  sky.addColorStop(0, "#1f4f8f"); sky.addColorStop(0.6, "#8fb8de"); sky.addColorStop(1, "#f6d8b0");
  pen.fillStyle = sky; pen.fillRect(0, 0, width, height);
  pen.fillStyle = "#fff3d0"; pen.beginPath(); pen.arc(width * 0.72, height * 0.42, height * 0.06, 0, 7); pen.fill();
  for (let ridge = 0; ridge < 5; ridge += 1) {
    const base = height * (0.5 + ridge * 0.1), rough = height * 0.11;
    pen.fillStyle = `hsl(${205 - ridge * 22} ${22 + ridge * 5}% ${52 - ridge * 9}%)`;
    pen.beginPath(); pen.moveTo(0, height);
    for (let x = 0; x <= width; x += width / 160) {
      const wave = Math.sin(x / (width / (5 + ridge * 2)) + ridge * 2) + 0.4 * Math.sin(x / (width / 31) + ridge);
      pen.lineTo(x, base - wave * rough * 0.6 + next() * height * 0.012);
    }
    pen.lineTo(width, height); pen.fill();
  }
  for (let dot = 0; dot < 9000; dot += 1) {
    pen.fillStyle = `hsl(${70 + next() * 60} 35% ${14 + next() * 22}%)`;
    const y = height * (0.86 + next() * 0.14);
    pen.fillRect(next() * width, y, width / 300, height / 90);
  }
}

function paper(pen, width, height) {
  const next = random(3);
  pen.fillStyle = "#fbfaf6"; pen.fillRect(0, 0, width, height);
  pen.fillStyle = "#222";
  pen.font = `700 ${width / 26}px sans-serif`; pen.fillText("Invoice 2041-77", width * 0.1, height * 0.09);
  pen.font = `${width / 62}px serif`;
  const wordList = "the quantity of goods delivered under this order is payable within thirty days of receipt at the rate agreed".split(" ");
  for (let line = 0; line < 46; line += 1) {
    let text = "";
    while (pen.measureText(text).width < width * (line % 9 === 8 ? 0.4 : 0.76)) text += `${wordList[Math.floor(next() * wordList.length)]} `;
    pen.fillText(text, width * 0.1, height * (0.14 + line * 0.0175));
  }
}

function screen(pen, width, height) {
  const next = random(11);
  pen.fillStyle = "#f3f5f8"; pen.fillRect(0, 0, width, height);
  pen.fillStyle = "#1f2733"; pen.fillRect(0, 0, width, height * 0.06);
  pen.fillStyle = "#fff"; pen.font = `600 ${height * 0.024}px sans-serif`; pen.fillText("Operations", width * 0.02, height * 0.038);
  for (let tile = 0; tile < 6; tile += 1) {
    const x = width * (0.02 + (tile % 3) * 0.327), y = height * (0.1 + Math.floor(tile / 3) * 0.45), w = width * 0.305, h = height * 0.41;
    pen.fillStyle = "#fff"; pen.fillRect(x, y, w, h);
    pen.strokeStyle = `hsl(${tile * 55} 60% 45%)`; pen.lineWidth = height / 400; pen.beginPath();
    for (let at = 0; at <= 60; at += 1) pen.lineTo(x + (w * at) / 60, y + h * (0.75 - 0.3 * Math.sin(at / (5 + tile)) - next() * 0.15));
    pen.stroke();
    pen.fillStyle = "#333"; pen.font = `${height * 0.018}px sans-serif`; pen.fillText(`Panel ${tile + 1}: ${Math.round(next() * 9000)} ms`, x + w * 0.03, y + h * 0.09);
  }
}

export const SAMPLES = [
  { name: "Photo 12 MP", file: "photo-12mp.jpg", width: 4032, height: 3024, type: "image/jpeg", paint: landscape },
  { name: "Scan A4", file: "scan-a4.png", width: 1654, height: 2339, type: "image/png", paint: paper },
  { name: "Screen 4K", file: "screen-4k.png", width: 3840, height: 2160, type: "image/png", paint: screen },
  { name: "Strip", file: "strip.jpg", width: 3600, height: 600, type: "image/jpeg", paint: landscape },
];

export function make(sample) {
  const canvas = document.createElement("canvas");
  canvas.width = sample.width; canvas.height = sample.height;
  sample.paint(canvas.getContext("2d"), sample.width, sample.height);
  return new Promise((resolve) => {
    canvas.toBlob((blob) => resolve(new File([blob], sample.file, { type: sample.type })), sample.type, 0.9);
  });
}
