//! H.264 by OpenH264 (Cisco): constrained baseline, one thread, slices below a packet's size. A decoder conceals slices that are missing.
//!
//! The library's own rate control is off, and `quantizer.rs` has its place. With the library's a key frame took up to 25 times the mean, and sizes of
//! other pictures varied by as much as their mean. It has no intra refresh; key frames come on demand.

use lastmile::units::Rate;
use openh264::OpenH264API;
use openh264::decoder::{Decoder as Native, DecoderConfig};
use openh264::encoder::{
    BitRate, Complexity, EncoderConfig, FrameRate, IntraFramePeriod, Profile, RateControlMode, UsageType,
};
use openh264::formats::YUVSlices;
use openh264_sys2::{
    DECODER_OPTION_ERROR_CON_IDC, ENCODER_OPTION_SVC_ENCODE_PARAM_EXT, ENCODER_OPTION_TRACE_LEVEL,
    ERROR_CON_SLICE_COPY_CROSS_IDR, SBufferInfo, SEncParamExt, WELS_LOG_QUIET, dsErrorFree as ERROR_FREE,
};

use super::quantizer::Quantizer;
use super::{Decoder, Encoder, MediaError, Picture};

/// Least rate that is asked of the codec: below it no picture of any use comes out.
const MIN_RATE: u32 = 20_000;

/// Least size of slices: that of a macroblock at its worst, and headers.
const MIN_SLICE: usize = 450;

/// A key frame is coded so often until it is small enough.
const KEY_TRIES: usize = 4;

fn refused(error: impl ToString) -> MediaError {
    MediaError::Codec(error.to_string())
}

/// The encoder.
pub struct H264Encoder {
    native: openh264::encoder::Encoder,
    most: u32,
    frame_rate: f64,
    slice_size: usize,
    quantizer: Quantizer,
    key: bool,
    /// The native one was made for these; nothing before the first picture.
    made: Option<(usize, usize, usize)>,
}

impl H264Encoder {
    /// An encoder that makes `most` at the highest, in slices of `slice_size` bytes at most.
    ///
    /// # Errors
    /// The library refuses.
    pub fn new(most: Rate, frame_rate: f64, slice_size: usize) -> Result<H264Encoder, MediaError> {
        let most = u32::try_from(most.bits_per_second()).unwrap_or(u32::MAX).clamp(MIN_RATE, 240_000_000);
        let native = native(most, frame_rate, slice_size)?;
        let quantizer = Quantizer::new(f64::from(most) / 8.0 / frame_rate);
        Ok(H264Encoder { native, most, frame_rate, slice_size, quantizer, key: false, made: None })
    }

    /// Begins anew, for pictures of that size. The library is initialized by a picture, which nobody sees.
    fn make(&mut self, (width, height): (usize, usize)) -> Result<(), MediaError> {
        if self.made.is_some() {
            self.native = native(self.most, self.frame_rate, self.slice_size)?;
        }
        self.native.encode(&slices(&Picture::new(width, height)?)).map_err(refused)?;
        (self.made, self.key) = (Some((width, height, self.slice_size)), true);
        Ok(())
    }

    /// Codes a picture by that quantizer, which the wrapper does not have.
    fn coded(&mut self, picture: &Picture, quantizer: i32) -> Result<Vec<u8>, MediaError> {
        let mut params = SEncParamExt::default();
        // SAFETY: the encoder is initialized, since a picture was coded; the option reads and writes one SEncParamExt, which outlives
        // both calls.
        let refused_as = unsafe {
            let native = self.native.raw_api();
            let read = native.get_option(ENCODER_OPTION_SVC_ENCODE_PARAM_EXT, (&raw mut params).cast());
            params.sSpatialLayers[0].iDLayerQp = quantizer;
            read | native.set_option(ENCODER_OPTION_SVC_ENCODE_PARAM_EXT, (&raw mut params).cast())
        };
        if refused_as != 0 {
            return Err(MediaError::Codec(format!("its parameters are not taken ({refused_as})")));
        }
        Ok(self.native.encode(&slices(picture)).map_err(refused)?.to_vec())
    }

    fn coded_key(&mut self, picture: &Picture) -> Result<Vec<u8>, MediaError> {
        let (mut unit, mut used) = (Vec::new(), 0);
        for _ in 0..KEY_TRIES {
            used = self.quantizer.key_frame();
            self.native.force_intra_frame();
            unit = self.coded(picture, used)?;
            if self.quantizer.coded_key(unit.len()) {
                break;
            }
        }
        self.quantizer.sent_key(unit.len(), used);
        Ok(unit)
    }
}

fn native(most: u32, frame_rate: f64, slice_size: usize) -> Result<openh264::encoder::Encoder, MediaError> {
    let config = EncoderConfig::new()
        .bitrate(BitRate::from_bps(most))
        .max_frame_rate(FrameRate::from_hz(frame_rate as f32))
        .rate_control_mode(RateControlMode::Off)
        .usage_type(UsageType::CameraVideoRealTime)
        .complexity(Complexity::Low)
        .profile(Profile::Baseline)
        .skip_frames(false)
        .num_threads(1)
        .intra_frame_period(IntraFramePeriod::auto())
        .scene_change_detect(false)
        .max_slice_len(u32::try_from(slice_size.max(MIN_SLICE)).unwrap_or(u32::MAX));
    let mut native =
        openh264::encoder::Encoder::with_api_config(OpenH264API::from_source(), config).map_err(refused)?;
    let mut quiet = WELS_LOG_QUIET;
    // SAFETY: the library takes this option before it is initialized; it reads one integer, which outlives the call.
    unsafe { native.raw_api().set_option(ENCODER_OPTION_TRACE_LEVEL, (&raw mut quiet).cast()) };
    Ok(native)
}

fn slices(picture: &Picture) -> YUVSlices<'_> {
    let (width, height) = picture.size();
    let [y, u, v] = picture.planes();
    YUVSlices::new((y, u, v), (width, height), (width, width / 2, width / 2))
}

impl Encoder for H264Encoder {
    fn set_rate(&mut self, rate: Rate) {
        let rate = u32::try_from(rate.bits_per_second()).unwrap_or(u32::MAX).clamp(MIN_RATE, self.most);
        self.quantizer.set_mean(f64::from(rate) / 8.0 / self.frame_rate);
    }

    fn set_slice_size(&mut self, bytes: usize) {
        self.slice_size = bytes;
    }

    fn key_frame(&mut self) {
        self.key = true;
    }

    fn encode(&mut self, picture: &Picture) -> Result<Vec<u8>, MediaError> {
        let size = picture.size();
        let wanted = (size.0, size.1, self.slice_size);
        if self.made.is_none_or(|made| made != wanted && (self.key || (made.0, made.1) != size)) {
            self.make(size)?;
        }
        if std::mem::take(&mut self.key) {
            return self.coded_key(picture);
        }
        let unit = self.coded(picture, self.quantizer.picture())?;
        self.quantizer.coded(unit.len());
        Ok(unit)
    }
}

/// The decoder. It conceals what is missing by what stood there before.
pub struct H264Decoder(Native);

impl H264Decoder {
    /// A decoder that has seen nothing.
    ///
    /// # Errors
    /// The library refuses.
    pub fn new() -> Result<H264Decoder, MediaError> {
        let mut native =
            Native::with_api_config(OpenH264API::from_source(), DecoderConfig::new()).map_err(refused)?;
        let mut conceal = ERROR_CON_SLICE_COPY_CROSS_IDR;
        // SAFETY: the decoder is initialized; the option reads one integer, which outlives the call.
        unsafe { native.raw_api().set_option(DECODER_OPTION_ERROR_CON_IDC, (&raw mut conceal).cast()) };
        Ok(H264Decoder(native))
    }
}

impl Decoder for H264Decoder {
    fn decode(&mut self, access_unit: &[u8]) -> Result<Option<Picture>, MediaError> {
        let length =
            i32::try_from(access_unit.len()).map_err(|_| MediaError::Codec("it is too large".into()))?;
        let (mut planes, mut info) = ([std::ptr::null_mut::<u8>(); 3], SBufferInfo::default());
        // SAFETY: the decoder reads `length` bytes, and writes three pointers and one SBufferInfo. The wrapper's own call does the same, but
        // takes a concealed picture for an error and leaves it out.
        let (state, buffer) = unsafe {
            let (source, target) = (access_unit.as_ptr(), planes.as_mut_ptr());
            let state = self.0.raw_api().decode_frame_no_delay(source, length, target, &raw mut info);
            (state, info.UsrData.sSystemBuffer)
        };
        if info.iBufferStatus != 1 || planes.iter().any(|plane| plane.is_null()) {
            return match state {
                ERROR_FREE => Ok(None),
                _ => {
                    Err(MediaError::Codec(format!("no picture comes of this access unit (state {state:#x})")))
                }
            };
        }
        let side = |side: i32| usize::try_from(side).unwrap_or(0);
        let mut picture = Picture::new(side(buffer.iWidth), side(buffer.iHeight))?;
        let strides = [buffer.iStride[0], buffer.iStride[1], buffer.iStride[1]].map(side);
        let sizes = picture.plane_sizes();
        if strides.iter().zip(sizes).any(|(stride, (width, _))| *stride < width) {
            return Err(MediaError::Codec("its picture is narrower than it says".into()));
        }
        for (plane, target) in picture.planes_mut().into_iter().enumerate() {
            let ((width, height), stride) = (sizes[plane], strides[plane]);
            // SAFETY: the decoder's planes have `height` lines, `stride` bytes apart, and stay until it is called again.
            let source = unsafe { std::slice::from_raw_parts(planes[plane], (height - 1) * stride + width) };
            for (line, from) in target.chunks_exact_mut(width).zip(source.chunks(stride)) {
                line.copy_from_slice(&from[..width]);
            }
        }
        Ok(Some(picture))
    }
}

#[cfg(test)]
mod tests {
    use lastmile::observe::stats::{deviation, mean};

    use super::*;
    use crate::media::{Pictures, TestPattern, quality};
    use lastmile::wire::h264::{IDR_SLICE, nal_type, nal_units};

    const SLICE: usize = 1_100;

    fn is_key(unit: &[u8]) -> bool {
        nal_units(unit).any(|unit| nal_type(unit[0]) == IDR_SLICE)
    }

    #[test]
    fn the_rate_follows_within_a_second_and_slices_fit_packets() {
        let mut pattern = TestPattern::new(320, 240, 30.0).unwrap();
        let mut encoder = H264Encoder::new(Rate::ip(10_000_000), 30.0, SLICE).unwrap();
        let mut decoder = H264Decoder::new().unwrap();
        let (mut number, mut largest) = (0, 0);
        for kbits in [500, 1_500, 200] {
            encoder.set_rate(Rate::ip(kbits * 1_000));
            let mut seconds = Vec::new();
            for _ in 0..3 {
                let mut bytes = 0;
                for _ in 0..30 {
                    let picture = pattern.picture(number).unwrap().clone();
                    let unit = encoder.encode(&picture).unwrap();
                    assert_eq!(is_key(&unit), number == 0, "a new rate brings no key frame: {number}");
                    largest = nal_units(&unit).map(<[u8]>::len).max().unwrap_or(0).max(largest);
                    bytes += unit.len();
                    number += 1;
                    let Some(decoded) = decoder.decode(&unit).unwrap() else { continue };
                    let psnr = quality::psnr(&picture, &decoded).unwrap().y;
                    assert!(psnr > 25.0, "picture {number}: {psnr:.1} dB");
                }
                seconds.push(bytes as f64 * 8.0 / 1e3);
            }
            // The first second of 500 kbit/s has the key frame.
            for got in &seconds {
                assert!((got / kbits as f64 - 1.0).abs() < 0.1, "{kbits} kbit/s: {seconds:.0?}");
            }
        }
        assert!(largest <= SLICE, "{largest}");
    }

    /// Moving noise, of which a picture takes all that it may.
    #[test]
    fn pictures_are_alike_in_size_and_a_key_frame_is_no_more_than_five() {
        let mut encoder = H264Encoder::new(Rate::ip(10_000_000), 30.0, SLICE).unwrap();
        encoder.set_rate(Rate::ip(1_500_000));
        let (mut bits, mut sizes, mut keys) = (1_u32, Vec::new(), Vec::new());
        for number in 0..150 {
            let mut picture = Picture::new(320, 240).unwrap();
            for shade in picture.planes_mut()[0].iter_mut() {
                bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *shade = 112 + (bits >> 27) as u8;
            }
            if number % 50 == 0 {
                encoder.key_frame();
            }
            let unit = encoder.encode(&picture).unwrap();
            if is_key(&unit) { &mut keys } else { &mut sizes }.push(unit.len() as f64);
        }
        let all = mean(&[&keys[..], &sizes[..]].concat()).unwrap();
        assert!((all / 6_250.0 - 1.0).abs() < 0.05, "{all} B");
        let sizes = &sizes[30..];
        let deviates = deviation(sizes).unwrap() / mean(sizes).unwrap();
        assert!(deviates < 0.3, "{deviates}");
        assert!(keys.len() == 3 && keys.iter().all(|size| *size <= 5.0 * 6_250.0), "{keys:?}");
    }

    /// The pattern takes 60 kbit/s at the coarsest.
    #[test]
    fn a_rate_that_is_too_low_is_not_owed_afterwards() {
        let mut pattern = TestPattern::new(320, 240, 30.0).unwrap();
        let mut encoder = H264Encoder::new(Rate::ip(10_000_000), 30.0, SLICE).unwrap();
        let mut second = |encoder: &mut H264Encoder, number: u64| -> f64 {
            let bytes =
                (0..30).map(|at| encoder.encode(pattern.picture(30 * number + at).unwrap()).unwrap().len());
            bytes.sum::<usize>() as f64 * 8.0 / 1e3
        };
        encoder.set_rate(Rate::ip(20_000));
        assert!((0..3).map(|number| second(&mut encoder, number)).all(|kbits| kbits > 50.0));
        encoder.set_rate(Rate::ip(1_500_000));
        let first = second(&mut encoder, 3);
        let kbits = second(&mut encoder, 4);
        // The quantizer goes by steps.
        assert!(first > 900.0, "{first:.0}");
        assert!((1_350.0..1_650.0).contains(&kbits), "{kbits:.0}");
    }

    #[test]
    fn key_frames_come_on_demand_and_other_slices_with_them() {
        let mut pattern = TestPattern::new(320, 240, 30.0).unwrap();
        let mut encoder = H264Encoder::new(Rate::ip(1_000_000), 30.0, SLICE).unwrap();
        let mut encode =
            |encoder: &mut H264Encoder, number| encoder.encode(pattern.picture(number).unwrap()).unwrap();
        assert!(is_key(&encode(&mut encoder, 0)));
        assert!(!is_key(&encode(&mut encoder, 1)));
        encoder.set_slice_size(500);
        assert!(!is_key(&encode(&mut encoder, 2)));
        encoder.key_frame();
        let unit = encode(&mut encoder, 3);
        assert!(is_key(&unit) && nal_units(&unit).all(|unit| unit.len() <= 500));
        assert!(!is_key(&encode(&mut encoder, 4)));
    }

    #[test]
    fn garbage_is_survived_and_whole_pictures_are_shown_behind_a_missing_slice() {
        let mut pattern = TestPattern::new(320, 240, 30.0).unwrap();
        let mut encoder = H264Encoder::new(Rate::ip(1_000_000), 30.0, SLICE).unwrap();
        let mut decoder = H264Decoder::new().unwrap();
        let mut bits = 1_u32;
        let mut garbage = |length: usize| -> Vec<u8> {
            let byte = |_| {
                bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (bits >> 24) as u8
            };
            (0..length).map(byte).collect()
        };
        for length in [0, 1, 5, 100, 3_000] {
            let _ = decoder.decode(&garbage(length));
            let _ = decoder.decode(&[&[0, 0, 0, 1, 0x65], &garbage(length)[..]].concat());
        }
        for number in 0..60 {
            let mut unit = encoder.encode(pattern.picture(number).unwrap()).unwrap();
            match number % 20 {
                // A slice of a picture is missing, or a byte of it is wrong.
                5 if nal_units(&unit).count() > 1 => {
                    let place = unit.windows(4).rposition(|bytes| bytes == [0, 0, 0, 1]).unwrap();
                    unit.truncate(place);
                }
                10 => {
                    let middle = unit.len() / 2;
                    unit[middle] ^= 0x55;
                }
                15 => encoder.key_frame(),
                _ => {}
            }
            let damaged = matches!(number % 20, 5 | 10);
            let is_shown = decoder.decode(&unit).is_ok_and(|picture| picture.is_some());
            assert!(is_shown || damaged, "picture {number}");
        }
        // It recovers with the key frame.
        let picture = pattern.picture(60).unwrap().clone();
        encoder.key_frame();
        let decoded = decoder.decode(&encoder.encode(&picture).unwrap()).unwrap().expect("a key frame");
        assert!(quality::psnr(&picture, &decoded).unwrap().y > 20.0);
    }
}
