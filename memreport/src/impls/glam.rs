//! Measures vectors, matrices and rotations of `glam`, which own nothing. *Exact.*

use glam::{
    Affine2, Affine3A, BVec2, BVec3, BVec3A, BVec4, BVec4A, DAffine2, DAffine3, DMat2, DMat3,
    DMat4, DQuat, DVec2, DVec3, DVec4, EulerRot, I8Vec2, I8Vec3, I8Vec4, I16Vec2, I16Vec3, I16Vec4,
    I64Vec2, I64Vec3, I64Vec4, IVec2, IVec3, IVec4, Mat2, Mat3, Mat3A, Mat4, Quat, U8Vec2, U8Vec3,
    U8Vec4, U16Vec2, U16Vec3, U16Vec4, U64Vec2, U64Vec3, U64Vec4, UVec2, UVec3, UVec4, Vec2, Vec3,
    Vec3A, Vec4,
};

owns_nothing!(Vec2, Vec3, Vec3A, Vec4, Mat2, Mat3, Mat3A, Mat4, Quat, Affine2, Affine3A, EulerRot);
owns_nothing!(DVec2, DVec3, DVec4, DMat2, DMat3, DMat4, DQuat, DAffine2, DAffine3);
owns_nothing!(BVec2, BVec3, BVec3A, BVec4, BVec4A);
owns_nothing!(I8Vec2, I8Vec3, I8Vec4, U8Vec2, U8Vec3, U8Vec4);
owns_nothing!(I16Vec2, I16Vec3, I16Vec4, U16Vec2, U16Vec3, U16Vec4);
owns_nothing!(IVec2, IVec3, IVec4, UVec2, UVec3, UVec4);
owns_nothing!(I64Vec2, I64Vec3, I64Vec4, U64Vec2, U64Vec3, U64Vec4);
